/* SPDX-License-Identifier: Apache-2.0 */
/* Password verification off the event loop. The test replaces the helper threads and decides when their work
 * runs. */
#include "unit/test.h"

#include <crypt.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "verify_queue.h"

enum { NOW = 1800000000, ALL = 200, AT_ONCE = 2, MAY_WAIT = 128 };

/* ---- Fake server ---- */

static struct {
    void (*work)(void *ctx);
    void (*done)(void *ctx);
    void *ctx;
} submitted[ALL];
static unsigned n_submitted, n_done;
static int refusal; /* result of submitting work; 0: accepted */
static unsigned resumed;
static uint64_t now_ms;

int mk_worker_offload(struct mk_worker *w, void (*work)(void *ctx), void (*done)(void *ctx), void *ctx)
{
    (void)w;
    if (refusal)
        return refusal;
    assert_true(n_submitted < ALL);
    submitted[n_submitted].work = work;
    submitted[n_submitted].done = done;
    submitted[n_submitted++].ctx = ctx;
    return 0;
}

int64_t mk_worker_now(const struct mk_worker *w)
{
    (void)w;
    return NOW;
}

uint64_t mk_worker_now_ms(const struct mk_worker *w)
{
    (void)w;
    return now_ms;
}

void mk_request_resume(struct mk_request *r)
{
    (void)r;
    resumed++;
}

/* Runs the next work item that the threads have accepted. */
static void finish_work(void)
{
    assert_true(n_done < n_submitted);
    submitted[n_done].work(submitted[n_done].ctx);
    submitted[n_done].done(submitted[n_done].ctx);
    n_done++;
}

/* ---- Queries ---- */

static struct auth_shared shared;
static struct auth_verify_queue *desk;
static struct auth_waiter waits[ALL];
static const struct auth_users users;
static const struct auth_location location = {.users = &users, .cache_ms = 1000},
                                  other_location = {.users = &users, .cache_ms = 1000};
static char hash[CRYPT_OUTPUT_SIZE];
static struct auth_user ann;

static void setup(void)
{
    memset(&shared, 0, sizeof shared);
    memset(waits, 0, sizeof waits);
    n_submitted = n_done = resumed = 0;
    refusal = 0;
    now_ms = 5000;
    desk = auth_verify_queue_new(NULL, &shared);
    assert_non_null(desk);
}

/* Finishes all submitted work first, as the worker guarantees. */
static void teardown(void)
{
    while (n_done < n_submitted)
        finish_work();
    auth_verify_queue_free(desk);
}

static struct auth_verify_query make_query(const char *password, uint64_t client)
{
    struct auth_verify_query q = {.place = &location,
                                  .user = MK_STR("ann"),
                                  .password = mk_str_from_c(password),
                                  .known = &ann,
                                  .exists = true,
                                  .counted = {.hash = client, .limit = 1, .span_s = 60}};
    auth_verify_queue_set_mac(desk, &q);
    return q;
}

/* Counts the attempt in advance, as the plugin does. */
static bool submit(const struct auth_verify_query *q, struct auth_waiter *wait)
{
    assert_int_equal(auth_attempts_charge(&shared, &q->counted, NOW), 0);
    return auth_verify_queue_submit(desk, q, wait);
}

static bool is_counted(const struct auth_verify_query *q)
{
    return auth_attempts_blocked_s(&shared, &q->counted, NOW) > 0;
}

/* ---- Results ---- */

static void verify_queue_correct_password_is_accepted_and_cached(void **state)
{
    struct auth_verify_query q = make_query("secret", 1);
    (void)state;
    assert_false(auth_verify_queue_is_cached(desk, &q));
    assert_true(submit(&q, &waits[0]));
    assert_non_null(waits[0].job);
    assert_ptr_equal(waits[0].place, &location);
    assert_int_equal(waits[0].result, AUTH_RESULT_UNKNOWN);
    assert_true(is_counted(&q));
    finish_work();
    assert_null(waits[0].job);
    assert_int_equal(waits[0].result, AUTH_RESULT_VALID);
    assert_int_equal(resumed, 1);
    assert_false(is_counted(&q));
    assert_true(auth_verify_queue_is_cached(desk, &q));
    now_ms += 999;
    assert_true(auth_verify_queue_is_cached(desk, &q));
    now_ms += 1;
    assert_false(auth_verify_queue_is_cached(desk, &q));
}

static void verify_queue_wrong_password_is_counted(void **state)
{
    struct auth_verify_query q = make_query("secreT", 1);
    (void)state;
    assert_true(submit(&q, &waits[0]));
    finish_work();
    assert_int_equal(waits[0].result, AUTH_RESULT_INVALID);
    assert_true(is_counted(&q));
    assert_false(auth_verify_queue_is_cached(desk, &q));
}

/* Verifies the password against another user's hash, so that the time of the check reveals nothing. */
static void verify_queue_unknown_user_is_rejected(void **state)
{
    struct auth_verify_query q = make_query("secret", 1);
    (void)state;
    q.exists = false;
    assert_true(submit(&q, &waits[0]));
    finish_work();
    assert_int_equal(waits[0].result, AUTH_RESULT_INVALID);
    assert_true(is_counted(&q));
    assert_false(auth_verify_queue_is_cached(desk, &q));
}

static void verify_queue_location_without_cache_caches_nothing(void **state)
{
    static const struct auth_location forgetful = {.users = &users};
    struct auth_verify_query q = make_query("secret", 1), same = make_query("secret", 1);
    (void)state;
    q.place = &forgetful;
    assert_true(submit(&q, &waits[0]));
    finish_work();
    assert_int_equal(waits[0].result, AUTH_RESULT_VALID);
    assert_false(auth_verify_queue_is_cached(desk, &same));
    assert_true(submit(&same, &waits[1])); /* the same users, in a location with a cache */
    finish_work();
    assert_true(auth_verify_queue_is_cached(desk, &same));
    assert_false(auth_verify_queue_is_cached(desk, &q));
}

/* ---- Identical queries ---- */

static void verify_queue_identical_queries_share_a_job(void **state)
{
    struct auth_verify_query q = make_query("secret", 1), same = make_query("secret", 1),
                             other = make_query("secreT", 1), from = make_query("secret", 2),
                             at = make_query("secret", 1);
    (void)state;
    at.place = &other_location;
    assert_null(auth_verify_queue_find_job(desk, &q));
    assert_true(submit(&other, &waits[0]));
    auth_attempts_refund(&shared, &other.counted, NOW);
    assert_true(submit(&q, &waits[1]));
    struct auth_verify_job *job = auth_verify_queue_find_job(desk, &same);
    assert_ptr_equal(job, waits[1].job);
    assert_null(auth_verify_queue_find_job(desk, &from));
    assert_null(auth_verify_queue_find_job(desk, &at));
    auth_waiter_join_job(&waits[2], job, &same);
    auth_waiter_join_job(&waits[3], job, &same);
    auth_waiter_leave(&waits[2]);
    assert_null(waits[2].job);
    finish_work();
    finish_work();
    assert_int_equal(waits[0].result, AUTH_RESULT_INVALID);
    assert_int_equal(waits[1].result, AUTH_RESULT_VALID);
    assert_int_equal(waits[2].result, AUTH_RESULT_UNKNOWN);
    assert_int_equal(waits[3].result, AUTH_RESULT_VALID);
    assert_int_equal(resumed, 3);
    assert_null(auth_verify_queue_find_job(desk, &q));
}

static void verify_queue_query_mac_depends_on_all_parts(void **state)
{
    static const struct auth_users others;
    static const struct auth_location elsewhere = {.users = &others};
    struct auth_verify_query q = make_query("secret", 1), user = q, users_of = q;
    (void)state;
    user.user = MK_STR("bob");
    auth_verify_queue_set_mac(desk, &user);
    assert_memory_not_equal(user.mac, q.mac, AUTH_MAC_LEN);
    users_of.place = &elsewhere;
    auth_verify_queue_set_mac(desk, &users_of);
    assert_memory_not_equal(users_of.mac, q.mac, AUTH_MAC_LEN);
}

/* ---- Many queries ---- */

static void verify_queue_runs_two_jobs_at_once_in_order(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        struct auth_verify_query q = make_query("secret", i);
        assert_true(submit(&q, &waits[i]));
        assert_int_equal(n_submitted, i < AT_ONCE ? i + 1 : AT_ONCE);
    }
    for (unsigned i = 0; i < 5; i++) {
        finish_work();
        assert_int_equal(n_submitted, i + 3 < 5 ? i + 3 : 5);
        for (unsigned k = 0; k < 5; k++)
            assert_int_equal(waits[k].result, k <= i ? AUTH_RESULT_VALID : AUTH_RESULT_UNKNOWN);
    }
}

static void verify_queue_full_rejects_query(void **state)
{
    struct auth_verify_query q;
    (void)state;
    for (unsigned i = 0; i < AT_ONCE + MAY_WAIT; i++) {
        q = make_query("secret", i);
        assert_true(submit(&q, &waits[i]));
    }
    q = make_query("secret", ALL);
    assert_false(submit(&q, &waits[ALL - 1]));
    assert_false(is_counted(&q));
    finish_work();
    assert_true(submit(&q, &waits[ALL - 1]));
}

/* ---- Clients that disconnect ---- */

static void verify_queue_abandoned_job_is_dropped(void **state)
{
    struct auth_verify_query q[6];
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        q[i] = make_query("secret", i);
        assert_true(submit(&q[i], &waits[i]));
    }
    auth_waiter_leave(&waits[3]);
    auth_waiter_leave(&waits[3]); /* this waiter has already left */
    auth_waiter_leave(&waits[5]); /* this is the last waiter in the queue */
    auth_waiter_leave(&waits[0]); /* this check is already running, so it is completed */
    assert_false(is_counted(&q[3]));
    assert_false(is_counted(&q[5]));
    assert_true(is_counted(&q[0]));
    struct auth_verify_query later = make_query("secret", 7);
    assert_true(submit(&later, &waits[7]));
    while (n_done < n_submitted)
        finish_work();
    assert_int_equal(n_done, 5);
    assert_int_equal(resumed, 4);
    assert_int_equal(waits[0].result, AUTH_RESULT_UNKNOWN);
    assert_int_equal(waits[4].result, AUTH_RESULT_VALID);
    assert_int_equal(waits[7].result, AUTH_RESULT_VALID);
}

static void verify_queue_worker_exit_completes_waiters(void **state)
{
    struct auth_verify_query q[4];
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        q[i] = make_query("secret", i);
        assert_true(submit(&q[i], &waits[i]));
    }
    refusal = -EAGAIN; /* the threads accept no more work */
    finish_work();
    finish_work();
    assert_int_equal(waits[3].result, AUTH_RESULT_BUSY);
    assert_false(is_counted(&q[3]));
}

/* ---- No free threads ---- */

static void verify_queue_without_threads_is_busy(void **state)
{
    struct auth_verify_query q = make_query("secret", 1);
    (void)state;
    refusal = -EAGAIN;
    assert_true(submit(&q, &waits[0]));
    assert_null(waits[0].job);
    assert_int_equal(waits[0].result, AUTH_RESULT_BUSY);
    assert_false(is_counted(&q));
    refusal = 0;
    assert_true(submit(&q, &waits[1]));
    finish_work();
    assert_int_equal(waits[1].result, AUTH_RESULT_VALID);
}

static void verify_queue_busy_threads_are_retried(void **state)
{
    struct auth_verify_query first = make_query("secret", 1), second = make_query("secret", 2);
    (void)state;
    assert_true(submit(&first, &waits[0]));
    refusal = -EAGAIN;
    assert_true(submit(&second, &waits[1]));
    assert_non_null(waits[1].job);
    assert_int_equal(n_submitted, 1);
    refusal = 0;
    finish_work();
    assert_int_equal(n_submitted, 2);
    finish_work();
    assert_int_equal(waits[1].result, AUTH_RESULT_VALID);
}

int main(void)
{
    static struct crypt_data data;
    const struct CMUnitTest tests[] = {
        fixture_test(verify_queue_correct_password_is_accepted_and_cached, setup, teardown),
        fixture_test(verify_queue_wrong_password_is_counted, setup, teardown),
        fixture_test(verify_queue_unknown_user_is_rejected, setup, teardown),
        fixture_test(verify_queue_location_without_cache_caches_nothing, setup, teardown),
        fixture_test(verify_queue_identical_queries_share_a_job, setup, teardown),
        fixture_test(verify_queue_query_mac_depends_on_all_parts, setup, teardown),
        fixture_test(verify_queue_runs_two_jobs_at_once_in_order, setup, teardown),
        fixture_test(verify_queue_full_rejects_query, setup, teardown),
        fixture_test(verify_queue_abandoned_job_is_dropped, setup, teardown),
        fixture_test(verify_queue_worker_exit_completes_waiters, setup, teardown),
        fixture_test(verify_queue_without_threads_is_busy, setup, teardown),
        fixture_test(verify_queue_busy_threads_are_retried, setup, teardown)};
    const char *made = crypt_rn("secret", "$5$rounds=1000$salt", &data, (int)sizeof data);
    (void)snprintf(hash, sizeof hash, "%s", made ? made : "");
    ann = (struct auth_user){.name = MK_STR("ann"), .hash = mk_str_from_c(hash)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
