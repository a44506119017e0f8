/* SPDX-License-Identifier: Apache-2.0 */
#include "issuer.h"

#include "allow_endpoint.h"
#include "helper_process.h"
#include "unit/test.h"

/* The steps that can be started, and the result of the request. */
static struct {
    bool is_listed, can_ask, can_run;
    unsigned n_results, n_logged;
    enum acme_result result;
    struct acme_message sent;
} steps;

static char object; /* its address stands for a question or a process */

bool acme_allow_list_has(const struct acme_allow_list *list, mk_str name)
{
    (void)list, (void)name;
    return steps.is_listed;
}

struct acme_question *
acme_question_ask(struct mk_worker *worker, const struct acme_settings *s, mk_str name,
                  void (*on_answer)(void *ctx, enum acme_answer answer, const char *text), void *ctx)
{
    (void)worker, (void)s, (void)name, (void)on_answer, (void)ctx;
    return steps.can_ask ? (void *)&object : NULL;
}

void acme_question_free(struct acme_question *q)
{
    (void)q;
}

struct acme_helper_run *
acme_helper_run_start(struct mk_worker *worker, const struct acme_helper_job *job, mk_str name,
                      void (*on_report)(void *ctx, enum acme_helper_report report, mk_str text),
                      void (*on_end)(void *ctx, int status), void *ctx)
{
    (void)worker, (void)job, (void)name, (void)on_report, (void)on_end, (void)ctx;
    return steps.can_run ? (void *)&object : NULL;
}

void acme_helper_run_time_out(struct acme_helper_run *r)
{
    (void)r;
}

void acme_helper_run_free(struct acme_helper_run *r)
{
    (void)r;
}

struct acme_helper_process *acme_helper_process_start(struct mk_worker *worker,
                                                      const struct acme_helper_job *job,
                                                      void (*on_due)(void *ctx, mk_str name), void *ctx)
{
    (void)worker, (void)job, (void)on_due, (void)ctx;
    return (void *)&object;
}

void acme_helper_process_run_within(struct acme_helper_process *r, uint64_t seconds)
{
    (void)r, (void)seconds;
}

void acme_helper_process_stop(struct acme_helper_process *r)
{
    (void)r;
}

void acme_demand_stats_count(const struct mk_worker *worker, const struct acme_demand_stats *s,
                             enum acme_result result)
{
    (void)worker, (void)s;
    steps.n_results++;
    steps.result = result;
}

void acme_demand_stats_set_active(const struct mk_worker *worker, const struct acme_demand_stats *s, size_t n)
{
    (void)worker, (void)s, (void)n;
}

uint64_t mk_worker_now_ms(const struct mk_worker *worker)
{
    (void)worker;
    return 1000000;
}

void mk_worker_log(struct mk_worker *worker, enum mk_log_level level, const char *fmt, ...)
{
    (void)worker, (void)fmt;
    steps.n_logged += level == MK_LOG_ERROR;
}

void mk_worker_ref(struct mk_worker *worker)
{
    (void)worker;
}

void mk_worker_unref(struct mk_worker *worker)
{
    (void)worker;
}

int mk_worker_send(struct mk_worker *worker, const struct mk_plugin *plugin, unsigned to, mk_str message)
{
    mk_str name;
    (void)worker, (void)plugin, (void)to;
    assert_true(acme_message_parse(message, &steps.sent, &name));
    assert_str(name, "shop.example.com");
    return 0;
}

void mk_timer_set(struct mk_timer *timer, struct mk_worker *worker, uint32_t delay_ms)
{
    (void)timer, (void)worker, (void)delay_ms;
}

void mk_timer_stop(struct mk_timer *timer)
{
    (void)timer;
}

/* Requests a certificate, of which one step cannot be started. */
static void expect_failure(mk_str endpoint, enum acme_result result, uint32_t refused_ms)
{
    const struct acme_settings settings = {
        .endpoint = endpoint, .on_demand_interval_ms = 1000, .on_demand_burst = 100};
    const struct acme_helper_job job = {.settings = &settings, .program = "monkey-acme"};
    const struct acme_demand_stats stats = {0};
    const struct acme_message request = {.kind = ACME_MESSAGE_REQUEST};
    struct acme_issuer *s = acme_issuer_new(NULL, NULL, &stats, &job);
    assert_non_null(s);
    acme_issuer_on_request(s, &request, MK_STR("shop.example.com"));
    acme_issuer_free(s);
    assert_int_equal(steps.n_results, 1);
    assert_int_equal(steps.result, result);
    assert_int_equal(steps.sent.kind, ACME_MESSAGE_REFUSED);
    assert_int_equal(steps.sent.refused_ms, refused_ms);
}

static void set_up(void)
{
    memset(&steps, 0, sizeof steps);
}

static void issuer_question_that_cannot_be_asked_is_no_answer(void **state)
{
    (void)state;
    steps.can_run = true;
    expect_failure(MK_STR("http://allow.example/"), ACME_RESULT_NO_ANSWER, 30 * 1000);
    assert_int_equal(steps.n_logged, 1);
}

static void issuer_program_that_cannot_start_has_failed(void **state)
{
    (void)state;
    steps.is_listed = true;
    expect_failure(MK_STR(""), ACME_RESULT_FAILED, 10 * 1000);
    assert_int_equal(steps.n_logged, 1);
}

static void issuer_name_that_is_not_listed_is_not_allowed(void **state)
{
    (void)state;
    steps.can_ask = steps.can_run = true;
    expect_failure(MK_STR(""), ACME_RESULT_NOT_ALLOWED, 300 * 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(issuer_question_that_cannot_be_asked_is_no_answer, set_up, NULL),
        fixture_test(issuer_program_that_cannot_start_has_failed, set_up, NULL),
        fixture_test(issuer_name_that_is_not_listed_is_not_allowed, set_up, NULL),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
