/* SPDX-License-Identifier: Apache-2.0 */
#include "os/crash_probe.h"

#include <signal.h>
#include <unistd.h>

#include "unit/test.h"

static void return_normally(void *ctx)
{
    *(int *)ctx = 1;
}

static void crash(void *ctx)
{
    raise(*(int *)ctx);
}

static void exit_with(void *ctx)
{
    _exit(*(int *)ctx);
}

static void hang(void *ctx)
{
    (void)ctx;
    for (;;)
        pause();
}

static void crash_probe_returning_function_leaves_no_trace(void **state)
{
    int done = 0;
    (void)state;
    assert_int_equal(mk_crash_probe_run(return_normally, &done, 10), 0);
    assert_int_equal(done, 0);
}

static void crash_probe_reports_signal(void **state)
{
    static int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGKILL};
    (void)state;
    for (size_t i = 0; i < MK_LEN(signals); i++)
        assert_int_equal(mk_crash_probe_run(crash, &signals[i], 10), signals[i]);
}

static void crash_probe_reports_exit(void **state)
{
    static int codes[] = {0, 1, 255};
    (void)state;
    for (size_t i = 0; i < MK_LEN(codes); i++)
        assert_int_equal(mk_crash_probe_run(exit_with, &codes[i], 10), -ECANCELED);
}

static void crash_probe_kills_after_timeout(void **state)
{
    (void)state;
    assert_int_equal(mk_crash_probe_run(hang, NULL, 1), SIGALRM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crash_probe_returning_function_leaves_no_trace),
        cmocka_unit_test(crash_probe_reports_signal),
        cmocka_unit_test(crash_probe_reports_exit),
        cmocka_unit_test(crash_probe_kills_after_timeout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
