/* SPDX-License-Identifier: Apache-2.0 */
/* Tells apart a thread that computes, one that is blocked, and one that has no processor. The samples are
 * invented; one test observes real threads. */
#include "service/thread_usage.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "unit/test.h"

enum { TICK = 25000 };

static struct duda_thread_sample last;
static struct duda_thread_usage usage;

static int reset(void **state)
{
    (void)state;
    last = (struct duda_thread_sample){.time_us = 1000000, .cpu_us = 500, .queued_us = 70};
    usage = (struct duda_thread_usage){0};
    return 0;
}

/* Adds an interval; the arguments are the differences in microseconds. */
static void advance(uint64_t time, uint64_t cpu, uint64_t queued, enum duda_thread_state state)
{
    const struct duda_thread_sample next = {last.time_us + time, last.cpu_us + cpu, last.queued_us + queued,
                                            state};
    duda_thread_usage_add(&usage, &last, &next, TICK);
    last = next;
}

static void expect_usage(uint64_t computed, uint64_t blocked, uint64_t queued)
{
    assert_int_equal(usage.computed_us, computed);
    assert_int_equal(usage.blocked_us, blocked);
    assert_int_equal(usage.queued_us, queued);
}

static void expect_verdict(enum duda_usage_verdict verdict)
{
    assert_int_equal(duda_thread_usage_judge(&usage, 50000, 500000), verdict);
}

static void usage_of_computing_thread_is_computed_time(void **state)
{
    (void)state;
    advance(TICK, TICK, 0, DUDA_THREAD_RUNNABLE);
    expect_verdict(DUDA_USAGE_FINE);
    advance(TICK, TICK, 0, DUDA_THREAD_RUNNABLE);
    expect_usage(2 * TICK, 0, 0);
    expect_verdict(DUDA_USAGE_BLOCKS);
}

static void usage_of_sleeping_thread_is_blocked_time(void **state)
{
    (void)state;
    advance(TICK, 100, 0, DUDA_THREAD_BLOCKED);
    advance(TICK, 0, 0, DUDA_THREAD_BLOCKED);
    expect_usage(100, 2 * TICK - 100, 0);
    expect_verdict(DUDA_USAGE_BLOCKS);
}

/* The ticks are late, too, because the observing thread waits for the same processors. */
static void usage_of_starved_thread_is_queued_time_however_long(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        advance(160000, 0, 0, DUDA_THREAD_RUNNABLE);
    expect_verdict(DUDA_USAGE_FINE);
    advance(160000, 0, 0, DUDA_THREAD_RUNNABLE);
    expect_usage(0, 0, 640000);
    expect_verdict(DUDA_USAGE_STARVED);
    advance(60000, 50000, 650000, DUDA_THREAD_RUNNABLE); /* it runs: the kernel now counts the whole wait */
    expect_usage(50000, 0, 650000);
    expect_verdict(DUDA_USAGE_BLOCKS);
}

/* The kernel adds a wait to queued_us when it ends: an interval must not count it twice. */
static void usage_is_never_more_than_elapsed_time(void **state)
{
    (void)state;
    advance(TICK, 0, 0, DUDA_THREAD_RUNNABLE);
    advance(TICK, 10000, 40000, DUDA_THREAD_RUNNABLE);
    expect_usage(10000, 0, 40000);
    advance(TICK, 90000, 90000, DUDA_THREAD_BLOCKED);
    expect_usage(10000 + TICK, 0, 40000);
    advance(0, 10, 10, DUDA_THREAD_BLOCKED);
    expect_usage(10000 + TICK, 0, 40000);
}

static void usage_of_mixed_interval_is_split(void **state)
{
    (void)state;
    advance(TICK, 5000, 8000, DUDA_THREAD_BLOCKED);
    expect_usage(5000, 12000, 8000);
    advance(TICK, 5000, 8000, DUDA_THREAD_RUNNABLE);
    expect_usage(10000, 12000, 28000);
}

static void usage_omits_time_in_debugger(void **state)
{
    (void)state;
    advance(45000000, 0, 0, DUDA_THREAD_STOPPED);
    expect_usage(0, 0, 0);
}

/* Without /proc, only the punctuality of the ticks shows that the machine has processors to spare. */
static void usage_with_unknown_state_trusts_punctual_ticks(void **state)
{
    (void)state;
    advance(TICK, 0, 0, DUDA_THREAD_UNKNOWN);
    expect_usage(0, TICK, 0);
    advance(2 * TICK, 0, 0, DUDA_THREAD_UNKNOWN);
    expect_usage(0, TICK, 2 * TICK);
    advance(TICK, 5000, 0, DUDA_THREAD_UNKNOWN);
    expect_usage(5000, TICK, 2 * TICK + 20000);
}

static void usage_is_formatted_in_milliseconds(void **state)
{
    char text[200];
    struct mk_buf out = mk_buf_fixed(text, sizeof text);
    (void)state;
    usage = (struct duda_thread_usage){3999, 52000, 480001};
    duda_thread_usage_format(&usage, &out);
    assert_str(mk_buf_str(&out),
               "computed for 3 ms, blocked in system calls for 52 ms, without a processor for 480 ms");
}

/* ---- /proc ---- */

static void expect_parsed(const char *stat, const char *schedstat, enum duda_thread_state thread_state,
                          uint64_t queued)
{
    struct duda_thread_sample s = {0};
    duda_thread_files_parse(mk_str_from_c(stat), mk_str_from_c(schedstat), &s);
    assert_int_equal(s.state, thread_state);
    assert_int_equal(s.queued_us, queued);
}

static void thread_files_are_parsed(void **state)
{
    (void)state;
    expect_parsed("12 (monkey) R 1 1", "279457 4309750 2\n", DUDA_THREAD_RUNNABLE, 4309);
    expect_parsed("12 (a) S b) D 1 1", "0 0 0\n", DUDA_THREAD_BLOCKED, 0);
    expect_parsed("12 (monkey) S 1", "1 2000", DUDA_THREAD_BLOCKED, 2);
    expect_parsed("12 (monkey) t 1", "1", DUDA_THREAD_STOPPED, 0);
    expect_parsed("12 (monkey)", "", DUDA_THREAD_UNKNOWN, 0);
    expect_parsed("", "x y z", DUDA_THREAD_UNKNOWN, 0);
    expect_parsed("12 (monkey) ? 1", "1 -2", DUDA_THREAD_UNKNOWN, 0);
}

static struct duda_thread_files files;
static atomic_int phase;

static void *thread_main(void *arg)
{
    duda_thread_files_open(&files);
    atomic_store(&phase, 1);
    while (atomic_load(&phase) == 1)
        (void)poll(NULL, 0, 1000);
    while (atomic_load(&phase) == 2)
        continue;
    return arg;
}

static enum duda_thread_state state_of_thread(void)
{
    struct duda_thread_sample s = {0};
    duda_thread_files_read(&files, &s);
    return s.state;
}

static void wait_for_state(enum duda_thread_state wanted)
{
    for (int i = 0; i < 3000 && state_of_thread() != wanted; i++)
        (void)poll(NULL, 0, 10);
    assert_int_equal(state_of_thread(), wanted);
}

static void thread_files_show_another_thread(void **state)
{
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, thread_main, NULL), 0);
    while (!atomic_load(&phase))
        (void)poll(NULL, 0, 1);
    wait_for_state(DUDA_THREAD_BLOCKED);
    atomic_store(&phase, 2);
    wait_for_state(DUDA_THREAD_RUNNABLE);
    atomic_store(&phase, 3);
    assert_int_equal(pthread_join(thread, NULL), 0);
    duda_thread_files_close(&files);
    assert_int_equal(state_of_thread(), DUDA_THREAD_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(usage_of_computing_thread_is_computed_time, reset),
        cmocka_unit_test_setup(usage_of_sleeping_thread_is_blocked_time, reset),
        cmocka_unit_test_setup(usage_of_starved_thread_is_queued_time_however_long, reset),
        cmocka_unit_test_setup(usage_is_never_more_than_elapsed_time, reset),
        cmocka_unit_test_setup(usage_of_mixed_interval_is_split, reset),
        cmocka_unit_test_setup(usage_omits_time_in_debugger, reset),
        cmocka_unit_test_setup(usage_with_unknown_state_trusts_punctual_ticks, reset),
        cmocka_unit_test(usage_is_formatted_in_milliseconds),
        cmocka_unit_test(thread_files_are_parsed),
        cmocka_unit_test(thread_files_show_another_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
