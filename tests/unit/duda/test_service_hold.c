/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers that hold the loop are noticed, and the process gets its own action for the signal back. */
#include "service/hold.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "service/crash.h"
#include "unit/test.h"

static atomic_uint n_described;

/* Instead of the report. */
void duda_crash_describe(const char *what, const void *context)
{
    (void)what, (void)context;
    atomic_fetch_add(&n_described, 1);
}

static void ours(int number)
{
    (void)number;
}

static bool is_ours(void)
{
    struct sigaction now;
    assert_int_equal(sigaction(SIGURG, NULL, &now), 0);
    return now.sa_handler == ours;
}

static void *another_loop(void *arg)
{
    struct duda_hold *h = duda_hold_start();
    (void)arg;
    duda_hold_stop(h);
    return h;
}

static void the_signal_is_given_back(void **state)
{
    struct sigaction action = {.sa_handler = ours};
    pthread_t thread;
    void *other;
    (void)state;
    assert_int_equal(sigaction(SIGURG, &action, NULL), 0);
    struct duda_hold *h = duda_hold_start();
    assert_non_null(h);
    assert_false(is_ours());
    assert_int_equal(pthread_create(&thread, NULL, another_loop, NULL), 0);
    assert_int_equal(pthread_join(thread, &other), 0);
    assert_non_null(other);
    assert_false(is_ours()); /* the first one still needs it */
    duda_hold_stop(h);
    assert_true(is_ours());
}

static void a_handler_that_holds_the_loop_is_noticed(void **state)
{
    struct duda_hold *h = duda_hold_start();
    (void)state;
    duda_hold_enter(h);
    assert_false(duda_hold_leave(h));
    duda_hold_enter(h);
    for (unsigned i = 0; i < 600 && !atomic_load(&n_described); i++)
        (void)poll(NULL, 0, 50);
    assert_int_equal(n_described, 1);
    assert_true(duda_hold_leave(h));
    duda_hold_enter(h);
    assert_false(duda_hold_leave(h));
    duda_hold_stop(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_signal_is_given_back),
        cmocka_unit_test(a_handler_that_holds_the_loop_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
