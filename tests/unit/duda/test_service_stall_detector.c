/* SPDX-License-Identifier: Apache-2.0 */
/* The detector finds handlers that block the loop. When it stops, it restores the signal action of the
 * process. */
#include "service/stall_detector.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "service/crash_report.h"
#include "unit/test.h"

static atomic_uint n_described;

/* Replaces the report. */
void duda_crash_report_write(const char *what, const void *context)
{
    (void)what, (void)context;
    atomic_fetch_add(&n_described, 1);
}

static atomic_uint n_described_blocked;

void duda_crash_report_write_blocked(const struct duda_worker_ctx *worker_ctx, const char *what)
{
    (void)worker_ctx, (void)what;
    atomic_fetch_add(&n_described_blocked, 1);
}

static atomic_uint n_warned;

static char warning[512];

void duda_crash_report_warn(const struct duda_worker_ctx *worker_ctx, const char *problem)
{
    (void)worker_ctx;
    (void)snprintf(warning, sizeof warning, "%s", problem);
    atomic_fetch_add(&n_warned, 1);
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
    struct duda_stall_detector *h = duda_stall_detector_start(NULL, false);
    (void)arg;
    duda_stall_detector_stop(h);
    return h;
}

static void stall_detector_restores_signal_action(void **state)
{
    struct sigaction action = {.sa_handler = ours};
    pthread_t thread;
    void *other;
    (void)state;
    assert_int_equal(sigaction(SIGURG, &action, NULL), 0);
    struct duda_stall_detector *h = duda_stall_detector_start(NULL, false);
    assert_non_null(h);
    assert_false(is_ours());
    assert_int_equal(pthread_create(&thread, NULL, another_loop, NULL), 0);
    assert_int_equal(pthread_join(thread, &other), 0);
    assert_non_null(other);
    assert_false(is_ours()); /* the first detector still needs the signal */
    duda_stall_detector_stop(h);
    assert_true(is_ours());
}

static void stall_detector_reports_busy_handler(void **state)
{
    struct duda_stall_detector *h = duda_stall_detector_start(NULL, false);
    struct timespec begun, now;
    (void)state;
    duda_stall_detector_enter(h);
    assert_false(duda_stall_detector_leave(h));
    duda_stall_detector_enter(h);
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while (now.tv_sec < begun.tv_sec + 30 && !atomic_load(&n_described) &&
           !atomic_load(&n_described_blocked));
    /* if other processes hold the CPUs, the handler is described as blocked */
    assert_int_equal(n_described + n_described_blocked, 1);
    assert_true(duda_stall_detector_leave(h));
    duda_stall_detector_enter(h);
    assert_false(duda_stall_detector_leave(h));
    duda_stall_detector_stop(h);
    n_described = n_described_blocked = 0;
}

/* SA_RESTART does not restart this call or the two below: a signal would end them early. */
static int sleep_long(void)
{
    return nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 500000000}, NULL);
}

static int poll_long(void)
{
    return poll(NULL, 0, 1500);
}

static int sleep_seconds(void)
{
    return (int)sleep(2);
}

static void stall_detector_reports_blocking_call_without_interrupting_it(void **state)
{
    static int (*const calls[])(void) = {sleep_long, poll_long, sleep_seconds};
    struct duda_stall_detector *h = duda_stall_detector_start(NULL, false);
    (void)state;
    for (size_t i = 0; i < MK_LEN(calls); i++) {
        n_described = n_described_blocked = 0;
        duda_stall_detector_enter(h);
        assert_int_equal(calls[i](), 0);
        assert_true(duda_stall_detector_leave(h));
        assert_int_equal(n_described, 0);
        assert_int_equal(n_described_blocked, 1);
    }
    duda_stall_detector_stop(h);
}

static void stay_until_warned(struct duda_stall_detector *h, unsigned count)
{
    duda_stall_detector_enter(h);
    for (unsigned i = 0; i < 300 && atomic_load(&n_warned) < count; i++)
        (void)poll(NULL, 0, 100);
    (void)poll(NULL, 0, 100);
    (void)duda_stall_detector_leave(h);
    assert_int_equal(n_warned, count);
}

static void stall_detector_warns_once_about_each_slow_run_in_development(void **state)
{
    struct duda_stall_detector *h = duda_stall_detector_start(NULL, true);
    (void)state;
    stay_until_warned(h, 1);
    stay_until_warned(h, 2);
    assert_true(strncmp(warning, "blocks the event loop for more than 50 ms (computed for ", 56) == 0);
    assert_non_null(strstr(warning, " ms); other requests wait"));
    duda_stall_detector_stop(h);
    h = duda_stall_detector_start(NULL, false);
    duda_stall_detector_enter(h);
    assert_int_equal(poll(NULL, 0, 300), 0);
    (void)duda_stall_detector_leave(h);
    assert_int_equal(n_warned, 2);
    duda_stall_detector_stop(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stall_detector_restores_signal_action),
        cmocka_unit_test(stall_detector_reports_busy_handler),
        cmocka_unit_test(stall_detector_reports_blocking_call_without_interrupting_it),
        cmocka_unit_test(stall_detector_warns_once_about_each_slow_run_in_development),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
