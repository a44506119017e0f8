/* SPDX-License-Identifier: Apache-2.0 */
#include "issuer.h"

#include "allow_endpoint.h"
#include "helper_process.h"
#include "unit/test.h"

/* The steps that can be started, and the result of the request. */
static struct {
    bool is_listed, can_ask, can_run;
    unsigned n_results, n_logged, n_asks, n_runs;
    uint64_t now_ms;
    void (*on_due)(void *ctx, mk_str name);
    enum acme_result result;
    struct acme_message sent;
} steps;

static char object; /* its address stands for a question or a process */

bool acme_allow_list_has(const struct acme_allow_list *list, mk_str name)
{
    (void)list;
    return steps.is_listed || mk_str_starts(name, MK_STR("listed"));
}

struct acme_question *
acme_question_ask(struct mk_worker *worker, const struct acme_settings *s, mk_str name,
                  void (*on_answer)(void *ctx, enum acme_answer answer, const char *text), void *ctx)
{
    (void)worker, (void)s, (void)name, (void)on_answer, (void)ctx;
    steps.n_asks += steps.can_ask;
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
    steps.n_runs += steps.can_run;
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
    (void)worker, (void)job, (void)ctx;
    steps.on_due = on_due;
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
    return steps.now_ms;
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
    steps.now_ms = 1000000;
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

/* ---- Limits ---- */

static const struct acme_settings with_endpoint = {.endpoint = MK_STR_INIT("http://allow.example/"),
                                                   .on_demand_interval_ms = 3600 * 1000,
                                                   .on_demand_burst = 20};
static const struct acme_settings without_endpoint = {.on_demand_interval_ms = 3600 * 1000,
                                                      .on_demand_burst = 20};

static struct acme_issuer *start_issuer(const struct acme_settings *settings)
{
    static struct acme_helper_job job;
    static const struct acme_demand_stats stats;
    job = (struct acme_helper_job){.settings = settings, .program = "monkey-acme"};
    steps.can_ask = steps.can_run = true;
    struct acme_issuer *s = acme_issuer_new(NULL, NULL, &stats, &job);
    assert_non_null(s);
    return s;
}

/* Requests the names PREFIX0.example, PREFIX1.example and so on, one every `pause_ms`. Each of `n_networks` client networks has
 * the next name in turn. */
static void request_names(struct acme_issuer *s, const char *prefix, unsigned n, unsigned n_networks,
                          uint64_t pause_ms)
{
    for (unsigned i = 0; i < n; i++) {
        char buf[64];
        struct mk_buf name = mk_buf_fixed(buf, sizeof buf);
        struct acme_message m = {.kind = ACME_MESSAGE_REQUEST};
        m.network.ip[0] = (uint8_t)(i % n_networks);
        mk_buf_addf(&name, "%s%u.example", prefix, i);
        acme_issuer_on_request(s, &m, mk_buf_str(&name));
        steps.now_ms += pause_ms;
    }
}

static void issuer_unlisted_names_without_endpoint_use_up_no_limit(void **state)
{
    (void)state;
    struct acme_issuer *s = start_issuer(&without_endpoint);
    request_names(s, "x", 5000, 1, 0);
    assert_int_equal(steps.n_results, 5000);
    assert_int_equal(steps.result, ACME_RESULT_NOT_ALLOWED);
    assert_int_equal(steps.sent.refused_ms, 300 * 1000);
    request_names(s, "listed", 1, 1, 0);
    assert_int_equal(steps.n_runs, 1);
    acme_issuer_free(s);
}

static void issuer_listed_name_takes_no_question_of_the_rate(void **state)
{
    (void)state;
    struct acme_issuer *s = start_issuer(&with_endpoint);
    request_names(s, "x", 200, 50, 0);
    assert_int_equal(steps.result, ACME_RESULT_LIMITED);
    request_names(s, "listed", 1, 1, 0);
    assert_int_equal(steps.n_runs, 1);
    acme_issuer_free(s);
}

static void issuer_listed_name_of_a_client_without_questions_left_runs(void **state)
{
    (void)state;
    struct acme_issuer *s = start_issuer(&with_endpoint);
    request_names(s, "x", 11, 1, 0);
    assert_int_equal(steps.result, ACME_RESULT_LIMITED);
    request_names(s, "listed", 1, 1, 0);
    assert_int_equal(steps.n_runs, 1);
    acme_issuer_free(s);
}

static void issuer_listed_names_run_while_all_questions_hang(void **state)
{
    (void)state;
    struct acme_issuer *s = start_issuer(&with_endpoint);
    request_names(s, "x", 80, 50, 0);
    assert_int_equal(steps.n_asks, 64);
    request_names(s, "listed", 1, 1, 0);
    assert_int_equal(steps.n_runs, 1);
    steps.on_due(s, MK_STR("listed-renewal.example")); /* a renewal of a listed name */
    assert_int_equal(steps.n_runs, 2);
    steps.on_due(s, MK_STR("renewal.example")); /* and of another one, which waits for its question */
    assert_int_equal(steps.n_runs, 2);
    assert_int_equal(steps.n_asks, 64);
    acme_issuer_free(s);
}

static void issuer_tasks_of_unlisted_names_leave_space_for_listed_ones(void **state)
{
    (void)state;
    struct acme_issuer *s = start_issuer(&with_endpoint);
    request_names(s, "x", 400, 100, 50);
    assert_int_equal(steps.result, ACME_RESULT_LIMITED);
    assert_int_equal(steps.n_results, 400 - 192);
    request_names(s, "listed", 1, 1, 0);
    assert_int_equal(steps.n_runs, 1);
    acme_issuer_free(s);
}

static void issuer_listed_names_obey_the_other_limits(void **state)
{
    (void)state;
    struct acme_issuer *s = start_issuer(&with_endpoint);
    request_names(s, "listed", 20, 1, 0);
    assert_int_equal(steps.n_runs, 2);          /* programs of a client */
    assert_int_equal(steps.n_results, 20 - 16); /* tasks of a client */
    assert_int_equal(steps.result, ACME_RESULT_LIMITED);
    request_names(s, "listed-too", 6, 6, 0);
    assert_int_equal(steps.n_runs, 4);
    acme_issuer_free(s);
}

static void issuer_listed_names_obey_the_rate_of_certificates(void **state)
{
    (void)state;
    static const struct acme_settings seldom = {.on_demand_interval_ms = 3600 * 1000, .on_demand_burst = 1};
    struct acme_issuer *s = start_issuer(&seldom);
    request_names(s, "listed", 2, 2, 0);
    assert_int_equal(steps.n_runs, 1);
    assert_int_equal(steps.result, ACME_RESULT_LIMITED);
    acme_issuer_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(issuer_question_that_cannot_be_asked_is_no_answer, set_up, NULL),
        fixture_test(issuer_program_that_cannot_start_has_failed, set_up, NULL),
        fixture_test(issuer_name_that_is_not_listed_is_not_allowed, set_up, NULL),
        fixture_test(issuer_unlisted_names_without_endpoint_use_up_no_limit, set_up, NULL),
        fixture_test(issuer_listed_name_takes_no_question_of_the_rate, set_up, NULL),
        fixture_test(issuer_listed_name_of_a_client_without_questions_left_runs, set_up, NULL),
        fixture_test(issuer_listed_names_run_while_all_questions_hang, set_up, NULL),
        fixture_test(issuer_tasks_of_unlisted_names_leave_space_for_listed_ones, set_up, NULL),
        fixture_test(issuer_listed_names_obey_the_other_limits, set_up, NULL),
        fixture_test(issuer_listed_names_obey_the_rate_of_certificates, set_up, NULL),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
