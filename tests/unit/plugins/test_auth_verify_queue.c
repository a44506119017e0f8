/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of passwords beside the loop. The helper threads are this test, which does what they are given when it likes. */
#include "unit/test.h"

#include <crypt.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "verify_queue.h"

enum { NOW = 1800000000, ALL = 200, AT_ONCE = 2, MAY_WAIT = 128 };

/* ---- In place of the server ---- */

static struct {
    void (*work)(void *ctx);
    void (*done)(void *ctx);
    void *ctx;
} given[ALL];
static unsigned n_given, n_done;
static int refusal; /* what the threads answer; 0: they take it */
static unsigned resumed;
static uint64_t now_ms;

int mk_worker_offload(struct mk_worker *w, void (*work)(void *ctx), void (*done)(void *ctx), void *ctx)
{
    (void)w;
    if (refusal)
        return refusal;
    assert_true(n_given < ALL);
    given[n_given].work = work;
    given[n_given].done = done;
    given[n_given++].ctx = ctx;
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

/* The next one that the threads have been given. */
static void finish_one(void)
{
    assert_true(n_done < n_given);
    given[n_done].work(given[n_done].ctx);
    given[n_done].done(given[n_done].ctx);
    n_done++;
}

/* ---- Questions ---- */

static struct auth_shared shared;
static struct auth_verify_queue *desk;
static struct auth_waiter waits[ALL];
static const struct auth_users users;
static const struct auth_location place = {.users = &users, .cache_ms = 1000},
                                  other_place = {.users = &users, .cache_ms = 1000};
static char hash[CRYPT_OUTPUT_SIZE];
static struct auth_user ann;

static int begin(void **state)
{
    (void)state;
    memset(&shared, 0, sizeof shared);
    memset(waits, 0, sizeof waits);
    n_given = n_done = resumed = 0;
    refusal = 0;
    now_ms = 5000;
    desk = auth_verify_queue_new(NULL, &shared);
    return desk ? 0 : -1;
}

/* All that the threads have been given is done by then, as the worker sees to. */
static int end(void **state)
{
    (void)state;
    while (n_done < n_given)
        finish_one();
    auth_verify_queue_free(desk);
    return 0;
}

static struct auth_verify_query question(const char *password, uint64_t client)
{
    struct auth_verify_query q = {.place = &place,
                                  .user = MK_STR("ann"),
                                  .password = mk_str_from_c(password),
                                  .known = &ann,
                                  .exists = true,
                                  .counted = {.hash = client, .limit = 1, .span_s = 60}};
    auth_verify_queue_set_mac(desk, &q);
    return q;
}

/* As the plugin does: the attempt is counted in advance. */
static bool ask(const struct auth_verify_query *q, struct auth_waiter *wait)
{
    assert_int_equal(auth_attempts_charge(&shared, &q->counted, NOW), 0);
    return auth_verify_queue_submit(desk, q, wait);
}

static bool is_counted(const struct auth_verify_query *q)
{
    return auth_attempts_blocked_s(&shared, &q->counted, NOW) > 0;
}

/* ---- Answers ---- */

static void right_password_is_answered_and_remembered(void **state)
{
    struct auth_verify_query q = question("secret", 1);
    (void)state;
    assert_false(auth_verify_queue_is_cached(desk, &q));
    assert_true(ask(&q, &waits[0]));
    assert_non_null(waits[0].job);
    assert_ptr_equal(waits[0].place, &place);
    assert_int_equal(waits[0].answer, AUTH_RESULT_UNKNOWN);
    assert_true(is_counted(&q));
    finish_one();
    assert_null(waits[0].job);
    assert_int_equal(waits[0].answer, AUTH_RESULT_VALID);
    assert_int_equal(resumed, 1);
    assert_false(is_counted(&q));
    assert_true(auth_verify_queue_is_cached(desk, &q));
    now_ms += 999;
    assert_true(auth_verify_queue_is_cached(desk, &q));
    now_ms += 1;
    assert_false(auth_verify_queue_is_cached(desk, &q));
}

static void wrong_password_counts(void **state)
{
    struct auth_verify_query q = question("secreT", 1);
    (void)state;
    assert_true(ask(&q, &waits[0]));
    finish_one();
    assert_int_equal(waits[0].answer, AUTH_RESULT_INVALID);
    assert_true(is_counted(&q));
    assert_false(auth_verify_queue_is_cached(desk, &q));
}

/* Its hash is that of another user, so that the time of the check tells nothing. */
static void unknown_user_is_wrong_with_any_password(void **state)
{
    struct auth_verify_query q = question("secret", 1);
    (void)state;
    q.exists = false;
    assert_true(ask(&q, &waits[0]));
    finish_one();
    assert_int_equal(waits[0].answer, AUTH_RESULT_INVALID);
    assert_true(is_counted(&q));
    assert_false(auth_verify_queue_is_cached(desk, &q));
}

static void place_without_cache_remembers_nothing(void **state)
{
    static const struct auth_location forgetful = {.users = &users};
    struct auth_verify_query q = question("secret", 1), same = question("secret", 1);
    (void)state;
    q.place = &forgetful;
    assert_true(ask(&q, &waits[0]));
    finish_one();
    assert_int_equal(waits[0].answer, AUTH_RESULT_VALID);
    assert_false(auth_verify_queue_is_cached(desk, &same));
    assert_true(ask(&same, &waits[1])); /* the same users, and a place with a cache */
    finish_one();
    assert_true(auth_verify_queue_is_cached(desk, &same));
    assert_false(auth_verify_queue_is_cached(desk, &q));
}

/* ---- The same question ---- */

static void same_question_is_asked_once(void **state)
{
    struct auth_verify_query q = question("secret", 1), same = question("secret", 1),
                             other = question("secreT", 1), from = question("secret", 2),
                             at = question("secret", 1);
    (void)state;
    at.place = &other_place;
    assert_null(auth_verify_queue_find_job(desk, &q));
    assert_true(ask(&other, &waits[0]));
    auth_attempts_refund(&shared, &other.counted, NOW);
    assert_true(ask(&q, &waits[1]));
    struct auth_verify_job *job = auth_verify_queue_find_job(desk, &same);
    assert_ptr_equal(job, waits[1].job);
    assert_null(auth_verify_queue_find_job(desk, &from));
    assert_null(auth_verify_queue_find_job(desk, &at));
    auth_waiter_join_job(&waits[2], job, &same);
    auth_waiter_join_job(&waits[3], job, &same);
    auth_waiter_leave(&waits[2]);
    assert_null(waits[2].job);
    finish_one();
    finish_one();
    assert_int_equal(waits[0].answer, AUTH_RESULT_INVALID);
    assert_int_equal(waits[1].answer, AUTH_RESULT_VALID);
    assert_int_equal(waits[2].answer, AUTH_RESULT_UNKNOWN);
    assert_int_equal(waits[3].answer, AUTH_RESULT_VALID);
    assert_int_equal(resumed, 3);
    assert_null(auth_verify_queue_find_job(desk, &q));
}

static void questions_have_names_of_their_own(void **state)
{
    static const struct auth_users others;
    static const struct auth_location elsewhere = {.users = &others};
    struct auth_verify_query q = question("secret", 1), user = q, users_of = q;
    (void)state;
    user.user = MK_STR("bob");
    auth_verify_queue_set_mac(desk, &user);
    assert_memory_not_equal(user.mac, q.mac, AUTH_MAC_LEN);
    users_of.place = &elsewhere;
    auth_verify_queue_set_mac(desk, &users_of);
    assert_memory_not_equal(users_of.mac, q.mac, AUTH_MAC_LEN);
}

/* ---- Many ---- */

static void two_run_and_the_others_follow_in_turn(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        struct auth_verify_query q = question("secret", i);
        assert_true(ask(&q, &waits[i]));
        assert_int_equal(n_given, i < AT_ONCE ? i + 1 : AT_ONCE);
    }
    for (unsigned i = 0; i < 5; i++) {
        finish_one();
        assert_int_equal(n_given, i + 3 < 5 ? i + 3 : 5);
        for (unsigned k = 0; k < 5; k++)
            assert_int_equal(waits[k].answer, k <= i ? AUTH_RESULT_VALID : AUTH_RESULT_UNKNOWN);
    }
}

static void more_than_may_wait_are_refused(void **state)
{
    struct auth_verify_query q;
    (void)state;
    for (unsigned i = 0; i < AT_ONCE + MAY_WAIT; i++) {
        q = question("secret", i);
        assert_true(ask(&q, &waits[i]));
    }
    q = question("secret", ALL);
    assert_false(ask(&q, &waits[ALL - 1]));
    assert_false(is_counted(&q));
    finish_one();
    assert_true(ask(&q, &waits[ALL - 1]));
}

/* ---- Clients that leave ---- */

static void question_that_nobody_waits_for_is_dropped(void **state)
{
    struct auth_verify_query q[6];
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        q[i] = question("secret", i);
        assert_true(ask(&q[i], &waits[i]));
    }
    auth_waiter_leave(&waits[3]);
    auth_waiter_leave(&waits[3]); /* has left already */
    auth_waiter_leave(&waits[5]); /* the last */
    auth_waiter_leave(&waits[0]); /* runs, and is done to the end */
    assert_false(is_counted(&q[3]));
    assert_false(is_counted(&q[5]));
    assert_true(is_counted(&q[0]));
    struct auth_verify_query later = question("secret", 7);
    assert_true(ask(&later, &waits[7]));
    while (n_done < n_given)
        finish_one();
    assert_int_equal(n_done, 5);
    assert_int_equal(resumed, 4);
    assert_int_equal(waits[0].answer, AUTH_RESULT_UNKNOWN);
    assert_int_equal(waits[4].answer, AUTH_RESULT_VALID);
    assert_int_equal(waits[7].answer, AUTH_RESULT_VALID);
}

static void end_of_the_worker_answers_those_that_wait(void **state)
{
    struct auth_verify_query q[4];
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        q[i] = question("secret", i);
        assert_true(ask(&q[i], &waits[i]));
    }
    refusal = -EAGAIN; /* no more threads */
    finish_one();
    finish_one();
    assert_int_equal(waits[3].answer, AUTH_RESULT_BUSY);
    assert_false(is_counted(&q[3]));
}

/* ---- Without threads ---- */

static void without_threads_it_is_busy(void **state)
{
    struct auth_verify_query q = question("secret", 1);
    (void)state;
    refusal = -EAGAIN;
    assert_true(ask(&q, &waits[0]));
    assert_null(waits[0].job);
    assert_int_equal(waits[0].answer, AUTH_RESULT_BUSY);
    assert_false(is_counted(&q));
    refusal = 0;
    assert_true(ask(&q, &waits[1]));
    finish_one();
    assert_int_equal(waits[1].answer, AUTH_RESULT_VALID);
}

static void threads_that_are_busy_are_asked_again(void **state)
{
    struct auth_verify_query first = question("secret", 1), second = question("secret", 2);
    (void)state;
    assert_true(ask(&first, &waits[0]));
    refusal = -EAGAIN;
    assert_true(ask(&second, &waits[1]));
    assert_non_null(waits[1].job);
    assert_int_equal(n_given, 1);
    refusal = 0;
    finish_one();
    assert_int_equal(n_given, 2);
    finish_one();
    assert_int_equal(waits[1].answer, AUTH_RESULT_VALID);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    static struct crypt_data data;
    const struct CMUnitTest tests[] = {TEST(right_password_is_answered_and_remembered),
                                       TEST(wrong_password_counts),
                                       TEST(unknown_user_is_wrong_with_any_password),
                                       TEST(place_without_cache_remembers_nothing),
                                       TEST(same_question_is_asked_once),
                                       TEST(questions_have_names_of_their_own),
                                       TEST(two_run_and_the_others_follow_in_turn),
                                       TEST(more_than_may_wait_are_refused),
                                       TEST(question_that_nobody_waits_for_is_dropped),
                                       TEST(end_of_the_worker_answers_those_that_wait),
                                       TEST(without_threads_it_is_busy),
                                       TEST(threads_that_are_busy_are_asked_again)};
    const char *made = crypt_rn("secret", "$5$rounds=1000$salt", &data, (int)sizeof data);
    (void)snprintf(hash, sizeof hash, "%s", made ? made : "");
    ann = (struct auth_user){.name = MK_STR("ann"), .hash = mk_str_from_c(hash)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
