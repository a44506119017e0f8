/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs API with a fake store, fake queues and a fake Duda. */
#include <duda/memory.h>
#include <duda/request.h>
#include <duda/service.h>
#include <duda/task.h>
#include <errno.h>
#include <jobs/jobs_worker.h>
#include <monkey/mem.h>
#include <stdarg.h>
#include <stdio.h>

#include "unit/packages/handler.h"
#include "unit/test.h"

/* ---- Fake Duda and package ---- */

static struct jobs_worker work;
static bool has_store;
static unsigned announced;

struct jobs_worker *jobs_worker_get(struct mk_worker *w)
{
    (void)w;
    return &work;
}

mk_str jobs_queue_name(mk_str scope, const char *kind, char *buffer)
{
    return mk_str_of(buffer, (size_t)snprintf(buffer, JOBS_QUEUE_MAX, "%.*s.%s", MK_STR_ARG(scope), kind));
}

int duda_wait_begin(struct duda_ctx *d, struct duda_wait *w, void (*on_end)(struct duda_wait *w))
{
    *w = (struct duda_wait){.d = d, .on_end = on_end};
    return 0;
}

void duda_wait_end(struct duda_wait *w)
{
    w->on_end(w);
}

void jobs_worker_notify(struct mk_worker *w, mk_str queue)
{
    (void)w;
    assert_str(queue, "shop.mail");
    announced++;
}

uint64_t jobs_now_ms(void)
{
    return 0x123456789abc;
}

const struct duda_service_ref *duda_task_owner(struct mk_worker *w)
{
    (void)w;
    return NULL;
}

mk_str duda_scope_of(const struct duda_service_ref *owner)
{
    (void)owner;
    return MK_STR("shop");
}

mk_str duda_scope(struct duda_ctx *d)
{
    (void)d;
    return MK_STR("shop");
}

struct mk_worker *duda_worker(struct duda_ctx *d)
{
    (void)d;
    return NULL;
}

mk_str duda_sprintf(struct duda_ctx *d, const char *fmt, ...)
{
    char buffer[200];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(buffer, sizeof buffer, fmt, args);
    va_end(args);
    return duda_strdup(d, mk_str_of(buffer, (size_t)n));
}

static char logged[256];

void mk_worker_log(struct mk_worker *w, enum mk_log_level level, const char *fmt, ...)
{
    va_list args;
    (void)w;
    assert_int_equal(level, MK_LOG_ERROR);
    va_start(args, fmt);
    (void)vsnprintf(logged, sizeof logged, fmt, args);
    va_end(args);
}

/* ---- Fake store ---- */

static int result;
static struct duda_jobs_due due;
static mk_str unique;
static char pushed[64], queue_of_push[64];
static unsigned n_dead, asked_for, n_removed;
static mk_str failed_record;

static int enqueue(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id, mk_str record,
                   mk_str only, struct duda_jobs_due when)
{
    struct job_record r;
    (void)d, (void)s;
    assert_int_equal(id.len, 24);
    assert_int_equal(strncmp(id.p, "123456789abc", 12), 0);
    assert_true(job_record_parse(record, &r));
    assert_int_equal(r.enqueued_ms, 0x123456789abc);
    (void)snprintf(pushed, sizeof pushed, "%.*s", r.text.len < 40 ? (int)r.text.len : 40, r.text.p);
    (void)snprintf(queue_of_push, sizeof queue_of_push, "%.*s", MK_STR_ARG(queue));
    unique = only;
    due = when;
    return result;
}

static int count(struct duda_ctx *d, struct duda_store *s, mk_str queue, struct duda_job_counts *out)
{
    (void)d, (void)s;
    assert_str(queue, "shop.mail");
    *out = (struct duda_job_counts){1, 2, 3};
    return result;
}

/* The strings of a store need no NUL, and live until the callback returns. */
static bool pass_short_lived(bool (*each)(void *ctx, mk_str id, mk_str record), void *ctx, const char *text)
{
    size_t len = strlen(text);
    char *id = memcpy(malloc(2), "id", 2), *record = memcpy(malloc(len), text, len);
    bool wants_more = each(ctx, mk_str_of(id, 2), mk_str_of(record, len));
    free(id);
    free(record);
    return wants_more;
}

static int list(struct duda_ctx *d, struct duda_store *s, mk_str queue,
                bool (*each)(void *ctx, mk_str id, mk_str record), void *ctx)
{
    (void)d, (void)s;
    assert_str(queue, "shop.mail");
    for (asked_for = 0; asked_for < n_dead;) {
        asked_for++;
        if (!pass_short_lived(each, ctx, asked_for == 1 ? "no record" : "17 3 3\nkeybadtext"))
            break;
    }
    return result;
}

static int get_failed(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id, mk_str *record)
{
    (void)d, (void)s;
    assert_str(queue, "shop.mail");
    assert_int_equal(id.len, 24);
    *record = failed_record;
    return result == -ENOENT ? result : 0;
}

static int retry(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id, mk_str only)
{
    (void)d, (void)s;
    assert_str(queue, "shop.mail");
    assert_int_equal(id.len, 24);
    unique = only;
    return result;
}

static int remove_failed(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id)
{
    (void)d, (void)s;
    assert_str(queue, "shop.mail");
    assert_int_equal(id.len, 24);
    n_removed++;
    return result;
}

static const struct duda_jobs_ops ops = {.enqueue = enqueue,
                                         .count = count,
                                         .list = list,
                                         .get_failed = get_failed,
                                         .retry = retry,
                                         .remove = remove_failed};
static struct duda_store store = {.jobs = &ops};

struct duda_store *jobs_store_find(struct duda_ctx *d)
{
    (void)d;
    return has_store ? &store : NULL;
}

int jobs_store_missing(struct duda_ctx *d)
{
    (void)d;
    return -ENODEV;
}

static void setup(void)
{
    has_store = true;
    result = 0;
    announced = n_removed = 0;
    failed_record = MK_STR("17 3 3\nkeybadtext");
}

static void teardown(void)
{
    while (work.runners) {
        struct jobs_runner *r = work.runners;
        work.runners = r->next;
        mk_mem_free(r);
    }
    pool_free();
}

/* ---- Job types ---- */

static void expect_kind(const struct duda_job_type *kind, int e, const char *expected)
{
    logged[0] = '\0';
    assert_int_equal(duda_jobs_register(NULL, kind), e);
    if (!strstr(logged, expected))
        fail_msg("`%s` does not say `%s`", logged, expected);
}

static void jobs_register_validates_name_and_stack(void **state)
{
    static const char longest[] = "0123456789abcdefghij0123456789abcdefghij",
                      longer[] = "0123456789abcdefghij0123456789abcdefghijk";
    (void)state;
    assert_int_equal(strlen(longest), DUDA_JOBS_NAME_MAX);
    expect_kind(&(struct duda_job_type){.name = "a_B-9"}, 0, "");
    assert_str(mk_str_of(work.runners->queue, work.runners->queue_len), "shop.a_B-9");
    expect_kind(&(struct duda_job_type){.name = longest}, 0, "");
    expect_kind(&(struct duda_job_type){.name = longer}, -EINVAL, "1 to 40 letters, digits");
    expect_kind(&(struct duda_job_type){.name = ""}, -EINVAL, "1 to 40 letters, digits");
    expect_kind(&(struct duda_job_type){.name = "a.b"}, -EINVAL, "1 to 40 letters, digits");
    expect_kind(&(struct duda_job_type){.name = "stack", .stack = DUDA_STACK_MAX}, 0, "");
    expect_kind(&(struct duda_job_type){.name = "large", .stack = DUDA_STACK_MAX + 1}, -EINVAL,
                "at most 8 MB");
}

static void jobs_register_rejects_duplicate_name(void **state)
{
    (void)state;
    expect_kind(&(struct duda_job_type){.name = "a"}, 0, "");
    expect_kind(&(struct duda_job_type){.name = "b"}, 0, "");
    expect_kind(&(struct duda_job_type){.name = "a"}, -EINVAL, "already has a job type of this name");
    assert_null(work.runners->next->next);
}

static void jobs_register_rejects_malformed_schedule(void **state)
{
    (void)state;
    expect_kind(&(struct duda_job_type){.name = "a", .schedule = "every 5m"}, 0, "");
    expect_kind(&(struct duda_job_type){.name = "b", .schedule = "now and then"}, -EINVAL, "job type `b`: ");
}

/* ---- Enqueueing ---- */

static void jobs_enqueue_stores_and_announces(void **state)
{
    mk_str id = MK_STR_NULL;
    (void)state;
    assert_int_equal(duda_jobs_enqueue(HANDLER, "mail", MK_STR("text"), NULL, &id), 0);
    assert_string_equal(queue_of_push, "shop.mail");
    assert_string_equal(pushed, "text");
    assert_int_equal(id.len, 24);
    assert_null(unique.p);
    assert_int_equal(due.at_ms, 0);
    assert_int_equal(due.delay_ms, 0);
    assert_int_equal(announced, 1);
    assert_int_equal(duda_jobs_enqueue(HANDLER, "mail", MK_STR(""),
                                       &(struct duda_job_options){.delay_ms = 7, .unique_key = MK_STR("u")},
                                       NULL),
                     0);
    assert_str(unique, "u");
    assert_int_equal(due.delay_ms, 7);
    result = -EEXIST;
    assert_int_equal(duda_jobs_enqueue(HANDLER, "mail", MK_STR("text"), NULL, &id), -EEXIST);
    assert_null(id.p);
    assert_int_equal(announced, 2);
}

static void jobs_enqueue_rejects_invalid_options(void **state)
{
    static char text[DUDA_JOBS_PAYLOAD_MAX + 1];
    const struct duda_job_options longest = {.unique_key = {.p = text, .len = DUDA_JOBS_UNIQUE_KEY_MAX},
                                             .delay_ms = (uint64_t)3650 * 86400000},
                                  longer = {.unique_key = {.p = text, .len = DUDA_JOBS_UNIQUE_KEY_MAX + 1}},
                                  later = {.delay_ms = (uint64_t)3650 * 86400000 + 1};
    (void)state;
    memset(text, 'x', sizeof text);
    assert_int_equal(
        duda_jobs_enqueue(HANDLER, "mail", mk_str_of(text, DUDA_JOBS_PAYLOAD_MAX), &longest, NULL), 0);
    assert_int_equal(
        duda_jobs_enqueue(HANDLER, "mail", mk_str_of(text, DUDA_JOBS_PAYLOAD_MAX + 1), NULL, NULL),
        -EMSGSIZE);
    assert_int_equal(duda_jobs_enqueue(HANDLER, "mail", MK_STR(""), &longer, NULL), -EINVAL);
    assert_int_equal(duda_jobs_enqueue(HANDLER, "mail", MK_STR(""), &later, NULL), -EINVAL);
    assert_int_equal(duda_jobs_enqueue(HANDLER, "ma il", MK_STR(""), NULL, NULL), -EINVAL);
    pool_left = 0;
    assert_int_equal(duda_jobs_enqueue(HANDLER, "mail", MK_STR("x"), NULL, NULL), -ENOMEM);
    pool_left = SIZE_MAX;
    has_store = false;
    assert_int_equal(duda_jobs_enqueue(HANDLER, "mail", MK_STR(""), NULL, NULL), -ENODEV);
}

/* ---- Inspection ---- */

static void jobs_count_returns_numbers(void **state)
{
    struct duda_job_counts n;
    (void)state;
    assert_int_equal(duda_jobs_count(HANDLER, "mail", &n), 0);
    assert_int_equal(n.waiting, 1);
    assert_int_equal(n.failed, 3);
    assert_int_equal(duda_jobs_count(HANDLER, "ma il", &n), -EINVAL);
    assert_int_equal(n.failed, 0);
    has_store = false;
    assert_int_equal(duda_jobs_count(HANDLER, "mail", &n), -ENODEV);
}

struct seen {
    unsigned n, most;
    struct duda_job last;
};

static bool see(void *ctx, const struct duda_job *job)
{
    struct seen *s = ctx;
    s->last = *job;
    return ++s->n < s->most;
}

static void jobs_list_failed_is_limited(void **state)
{
    struct seen s = {.most = 5000};
    (void)state;
    n_dead = DUDA_JOBS_LIST_MAX + 5;
    assert_int_equal(duda_jobs_list_failed(HANDLER, "mail", see, &s), 0);
    assert_int_equal(s.n, DUDA_JOBS_LIST_MAX);
    assert_int_equal(asked_for, DUDA_JOBS_LIST_MAX);
    assert_str(s.last.id, "id");
    assert_str(s.last.last_error, "bad");
    assert_str(s.last.payload, "text");
    assert_int_equal(s.last.enqueued_ms, 17);
    s = (struct seen){.most = 3};
    assert_int_equal(duda_jobs_list_failed(HANDLER, "mail", see, &s), 0);
    assert_int_equal(s.n, 3);
    s = (struct seen){.most = 1}; /* the list shows a malformed record unchanged */
    assert_int_equal(duda_jobs_list_failed(HANDLER, "mail", see, &s), 0);
    assert_str(s.last.payload, "no record");
    assert_int_equal(duda_jobs_list_failed(HANDLER, "", see, &s), -EINVAL);
    has_store = false;
    assert_int_equal(duda_jobs_list_failed(HANDLER, "mail", see, &s), -ENODEV);
}

static void jobs_list_failed_copies_strings(void **state)
{
    struct seen s = {.most = 1};
    (void)state;
    n_dead = 2;
    assert_int_equal(duda_jobs_list_failed(HANDLER, "mail", see, &s), 0);
    assert_string_equal(s.last.id.p, "id");
    assert_string_equal(s.last.payload.p, "no record");
    assert_null(s.last.last_error.p);
    s = (struct seen){.most = 2};
    assert_int_equal(duda_jobs_list_failed(HANDLER, "mail", see, &s), 0);
    assert_string_equal(s.last.id.p, "id");
    assert_string_equal(s.last.payload.p, "text");
    assert_string_equal(s.last.last_error.p, "bad");
    for (size_t i = 0; i < 5; i++) {
        s = (struct seen){.most = 5};
        pool_left = i;
        assert_int_equal(duda_jobs_list_failed(HANDLER, "mail", see, &s), -ENOMEM);
        assert_int_equal(s.n, i < 2 ? 0 : 1); /* the first job has two strings, the second one three */
        pool_free();
    }
}

static void jobs_failed_can_be_retried_or_deleted(void **state)
{
    const mk_str id = MK_STR("0123456789abcdef01234567");
    (void)state;
    assert_int_equal(duda_jobs_retry(HANDLER, "mail", id), 0);
    assert_str(unique, "key");
    assert_int_equal(n_removed, 0);
    assert_int_equal(announced, 1);
    assert_int_equal(duda_jobs_delete(HANDLER, "mail", id), 0);
    assert_int_equal(n_removed, 1);
    assert_int_equal(announced, 1);
    result = -EEXIST;
    assert_int_equal(duda_jobs_retry(HANDLER, "mail", id), -EEXIST);
    assert_int_equal(announced, 1);
    result = 0;
    failed_record = MK_STR("17 0 3\nbadtext");
    assert_int_equal(duda_jobs_retry(HANDLER, "mail", id), 0);
    assert_null(unique.p);
    failed_record = MK_STR("no record");
    assert_int_equal(duda_jobs_retry(HANDLER, "mail", id), 0);
    assert_null(unique.p);
    announced = 1;
    assert_int_equal(duda_jobs_retry(HANDLER, "mail", mk_str_first(id, 23)), -ENOENT);
    assert_int_equal(duda_jobs_retry(HANDLER, "mail", MK_STR("0123456789abcdef0123456x")), -ENOENT);
    assert_int_equal(duda_jobs_retry(HANDLER, "ma il", id), -ENOENT);
    result = -ENOENT;
    assert_int_equal(duda_jobs_retry(HANDLER, "mail", id), -ENOENT);
    assert_int_equal(announced, 1);
    has_store = false;
    assert_int_equal(duda_jobs_delete(HANDLER, "mail", id), -ENODEV);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(jobs_register_validates_name_and_stack, setup, teardown),
        fixture_test(jobs_register_rejects_duplicate_name, setup, teardown),
        fixture_test(jobs_register_rejects_malformed_schedule, setup, teardown),
        fixture_test(jobs_enqueue_stores_and_announces, setup, teardown),
        fixture_test(jobs_enqueue_rejects_invalid_options, setup, teardown),
        fixture_test(jobs_count_returns_numbers, setup, teardown),
        fixture_test(jobs_list_failed_is_limited, setup, teardown),
        fixture_test(jobs_list_failed_copies_strings, setup, teardown),
        fixture_test(jobs_failed_can_be_retried_or_deleted, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
