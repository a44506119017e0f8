/* SPDX-License-Identifier: Apache-2.0 */
#include "event/loop.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "unit/fixtures.h"
#include "unit/test.h"

enum { SAID_MAX = 64, LONG_MS = 10000 };

static struct mk_loop loop;
static char calls[SAID_MAX];
static size_t n_calls;

static void record(char c)
{
    assert_true(n_calls < SAID_MAX - 1);
    calls[n_calls++] = c;
}

static void setup(void)
{
    n_calls = 0;
    memset(calls, 0, sizeof calls);
    loop_setup(&loop);
}

/* A pipe whose read end is watched. */
struct watched_pipe {
    struct mk_fd_watch watch;
    int ends[2];
    char name;
    uint32_t events;
    struct mk_loop_task *defers;
    struct watched_pipe *deafens;
};

static void on_ready(struct mk_fd_watch *w, uint32_t events)
{
    struct watched_pipe *e = MK_CONTAINER(w, struct watched_pipe, watch);
    e->events = events;
    record(e->name);
    if (e->defers)
        mk_loop_defer(&loop, e->defers);
    if (e->deafens)
        mk_loop_remove(&loop, e->deafens->ends[0]);
}

static struct watched_pipe *open_pipe(struct watched_pipe *e, char name, uint32_t events)
{
    *e = (struct watched_pipe){.watch.on_ready = on_ready, .name = name};
    assert_int_equal(pipe2(e->ends, O_NONBLOCK | O_CLOEXEC), 0);
    assert_int_equal(mk_loop_add(&loop, e->ends[0], &e->watch, events), 0);
    return e;
}

static void close_pipe(struct watched_pipe *e)
{
    close(e->ends[0]);
    close(e->ends[1]);
}

static void write_byte(struct watched_pipe *e)
{
    assert_int_equal(write(e->ends[1], "x", 1), 1);
}

static void run_once(int max_wait_ms)
{
    assert_int_equal(mk_loop_run_once(&loop, max_wait_ms), 0);
}

static void loop_ready_descriptor_is_reported(void **state)
{
    (void)state;
    struct watched_pipe a;
    open_pipe(&a, 'a', EPOLLIN);
    run_once(0);
    assert_string_equal(calls, "");
    write_byte(&a);
    run_once(LONG_MS);
    assert_string_equal(calls, "a");
    assert_int_equal(a.events, EPOLLIN);
    run_once(0);
    assert_string_equal(calls, "aa"); /* still unread */
    mk_loop_remove(&loop, a.ends[0]);
    run_once(0);
    assert_string_equal(calls, "aa");
    close_pipe(&a);
}

static void loop_edge_is_reported_once(void **state)
{
    (void)state;
    struct watched_pipe a;
    open_pipe(&a, 'a', EPOLLIN | EPOLLET);
    write_byte(&a);
    run_once(LONG_MS);
    run_once(0);
    assert_string_equal(calls, "a");
    write_byte(&a);
    run_once(LONG_MS);
    assert_string_equal(calls, "aa");
    close(a.ends[1]);
    run_once(LONG_MS);
    assert_true(a.events & EPOLLHUP);
    close(a.ends[0]);
    run_once(0);
    assert_string_equal(calls, "aaa");
}

static void loop_descriptor_cannot_be_added_twice(void **state)
{
    (void)state;
    struct watched_pipe a;
    open_pipe(&a, 'a', EPOLLIN);
    assert_int_equal(mk_loop_add(&loop, a.ends[0], &a.watch, EPOLLIN), -EEXIST);
    close_pipe(&a);
    assert_int_equal(mk_loop_add(&loop, a.ends[0], &a.watch, EPOLLIN), -EBADF);
}

/* ---- Deferred tasks ---- */

struct test_task {
    struct mk_loop_task task;
    char name;
    unsigned again; /* number of times that the task defers itself again */
    struct mk_loop_task *defers;
};

static void run(struct mk_loop_task *t)
{
    struct test_task *c = MK_CONTAINER(t, struct test_task, task);
    record(c->name);
    if (c->defers)
        mk_loop_defer(&loop, c->defers);
    if (c->again) {
        c->again--;
        mk_loop_defer(&loop, &c->task);
    }
}

static struct test_task test_task(char name)
{
    return (struct test_task){.task.run = run, .name = name};
}

static void loop_deferred_tasks_run_after_all_events(void **state)
{
    (void)state;
    struct watched_pipe a, b;
    struct test_task one = test_task('1'), two = test_task('2');
    open_pipe(&a, 'a', EPOLLIN | EPOLLET)->defers = &one.task;
    open_pipe(&b, 'a', EPOLLIN | EPOLLET)->defers = &two.task;
    write_byte(&a);
    write_byte(&b);
    run_once(LONG_MS);
    assert_memory_equal(calls, "aa", 2);
    assert_int_equal(n_calls, 4);
    assert_true(strchr(calls, '1') && strchr(calls, '2'));
    run_once(0);
    assert_int_equal(n_calls, 4);
    close_pipe(&a);
    close_pipe(&b);
}

static void loop_task_deferred_by_a_task_runs_after_the_others(void **state)
{
    (void)state;
    struct watched_pipe a;
    struct test_task always = test_task('1'), other = test_task('2');
    open_pipe(&a, 'a', EPOLLIN | EPOLLET);
    always.again = 3;
    always.defers = &other.task;
    mk_loop_defer(&loop, &always.task);
    write_byte(&a);
    run_once(LONG_MS); /* the loop does not sleep while there is work */
    assert_string_equal(calls, "a1");
    write_byte(&a);
    always.defers = NULL;
    run_once(LONG_MS);
    assert_int_equal(n_calls, 5);
    assert_memory_equal(calls, "a1a", 3);
    uint64_t before = mk_clock_ms();
    run_once(LONG_MS);
    run_once(LONG_MS);
    assert_true(mk_clock_ms() - before < LONG_MS / 2);
    assert_int_equal(n_calls, 7);
    run_once(0);
    assert_int_equal(n_calls, 7);
    close_pipe(&a);
}

static void loop_run_tasks_runs_all_tasks(void **state)
{
    (void)state;
    struct test_task stubborn = test_task('1');
    stubborn.again = 5;
    mk_loop_defer(&loop, &stubborn.task);
    mk_loop_run_tasks(&loop);
    assert_string_equal(calls, "111111");
}

/* ---- Timers ---- */

static void on_due(struct mk_timer *t)
{
    (void)t;
    record('t');
}

static void loop_sleeps_until_the_next_timer(void **state)
{
    (void)state;
    struct mk_timer timer;
    mk_timer_init(&timer, on_due);
    mk_loop_set_timer(&loop, &timer, 50);
    uint64_t before = mk_clock_ms();
    while (!n_calls)
        run_once(LONG_MS);
    assert_in_range(mk_clock_ms() - before, 49, LONG_MS / 2);
    assert_true(loop.now_ms >= before + 49);
}

/* The timer fires in the first iteration, even if the coarse clock lags behind. */
static void loop_timer_wakes_the_loop_once(void **state)
{
    (void)state;
    struct mk_timer timer;
    mk_timer_init(&timer, on_due);
    for (unsigned i = 1; i <= 20; i++) {
        mk_loop_set_timer(&loop, &timer, 5 + i);
        run_once(LONG_MS);
        assert_int_equal(n_calls, i);
    }
}

static void loop_iteration_waits_at_most_its_limit(void **state)
{
    (void)state;
    struct mk_timer timer;
    mk_timer_init(&timer, on_due);
    uint64_t before = mk_clock_us(); /* the loop's own clock is coarse */
    run_once(20);
    assert_in_range(mk_clock_us() - before, 19000, LONG_MS * 500);
    mk_loop_set_timer(&loop, &timer, LONG_MS);
    before = mk_clock_us();
    run_once(20);
    assert_in_range(mk_clock_us() - before, 19000, LONG_MS * 500);
    assert_string_equal(calls, "");
    mk_timer_stop(&timer);
}

/* ---- Wakeup ---- */

static void on_wakeup(struct mk_loop *l)
{
    assert_ptr_equal(l, &loop);
    record('!');
}

static void *wake_later(void *arg)
{
    (void)arg;
    usleep(30000);
    mk_loop_wakeup(&loop);
    return NULL;
}

static void loop_is_woken_by_another_thread(void **state)
{
    (void)state;
    pthread_t thread;
    loop.on_wakeup = on_wakeup;
    assert_int_equal(pthread_create(&thread, NULL, wake_later, NULL), 0);
    run_once(-1);
    assert_string_equal(calls, "!");
    pthread_join(thread, NULL);
    run_once(0);
    assert_string_equal(calls, "!");
}

static void loop_wakeups_are_merged(void **state)
{
    (void)state;
    loop.on_wakeup = on_wakeup;
    for (int i = 0; i < 1000; i++)
        mk_loop_wakeup(&loop);
    run_once(LONG_MS);
    run_once(0);
    assert_string_equal(calls, "!");
}

static void loop_wakeup_without_callback_is_consumed(void **state)
{
    (void)state;
    mk_loop_wakeup(&loop);
    run_once(LONG_MS);
    uint64_t before = mk_clock_us();
    run_once(20);
    assert_true(mk_clock_us() - before >= 19000); /* the first wakeup has been consumed */
}

/* ---- Running ---- */

static void on_alarm(int number)
{
    (void)number;
}

static void loop_signal_ends_an_iteration(void **state)
{
    (void)state;
    struct sigaction act = {.sa_handler = on_alarm}, old;
    const struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    assert_int_equal(sigaction(SIGALRM, &act, &old), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
    uint64_t before = mk_clock_ms();
    run_once(LONG_MS);
    assert_in_range(mk_clock_ms() - before, 10, LONG_MS / 2);
    sigaction(SIGALRM, &old, NULL);
}

static void stop_loop(struct mk_loop_task *t)
{
    (void)t;
    record('s');
    mk_loop_stop(&loop);
}

static void loop_runs_until_stopped(void **state)
{
    (void)state;
    struct watched_pipe a;
    struct mk_loop_task stopping = {.run = stop_loop};
    open_pipe(&a, 'a', EPOLLIN | EPOLLET)->defers = &stopping;
    write_byte(&a);
    assert_int_equal(mk_loop_run(&loop), 0);
    assert_string_equal(calls, "as");
    close_pipe(&a);
}

static void loop_epoll_error_is_returned(void **state)
{
    (void)state;
    int real = loop.epoll_fd;
    loop.epoll_fd = -1;
    assert_int_equal(mk_loop_run(&loop), -EBADF);
    loop.epoll_fd = real;
}

static uint64_t pulse, pulse_at_work;

static void note_pulse(struct mk_loop_task *t)
{
    (void)t;
    pulse_at_work = pulse;
}

static void loop_pulse_counts_work_outside_iterations(void **state)
{
    (void)state;
    pulse = 0;
    mk_loop_heartbeat(&loop, true); /* without a pulse */
    loop.pulse = &pulse;
    mk_loop_heartbeat(&loop, true);
    assert_int_equal(pulse, 1);
    mk_loop_heartbeat(&loop, true); /* starts other work */
    assert_int_equal(pulse, 3);
    assert_int_equal(mk_loop_run_once(&loop, 0), 0);
    assert_int_equal(pulse, 5);
    mk_loop_heartbeat(&loop, false);
    assert_int_equal(pulse, 6);
    mk_loop_heartbeat(&loop, false);
    assert_int_equal(pulse, 6);
}

static void loop_pulse_tells_if_it_works(void **state)
{
    (void)state;
    struct mk_loop_task task = {.run = note_pulse};
    uint64_t before = 0;
    pulse = 0;
    loop.pulse = &pulse;
    for (int i = 0; i < 3; i++) {
        mk_loop_defer(&loop, &task);
        assert_int_equal(mk_loop_run_once(&loop, 0), 0);
        assert_int_equal(pulse_at_work % 2, 1);
        assert_true(pulse_at_work > before); /* each iteration has a new value */
        before = pulse_at_work;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(loop_ready_descriptor_is_reported, setup),
        fixture_test(loop_edge_is_reported_once, setup),
        fixture_test(loop_descriptor_cannot_be_added_twice, setup),
        fixture_test(loop_deferred_tasks_run_after_all_events, setup),
        fixture_test(loop_task_deferred_by_a_task_runs_after_the_others, setup),
        fixture_test(loop_run_tasks_runs_all_tasks, setup),
        fixture_test(loop_sleeps_until_the_next_timer, setup),
        fixture_test(loop_timer_wakes_the_loop_once, setup),
        fixture_test(loop_iteration_waits_at_most_its_limit, setup),
        fixture_test(loop_is_woken_by_another_thread, setup),
        fixture_test(loop_wakeups_are_merged, setup),
        fixture_test(loop_wakeup_without_callback_is_consumed, setup),
        fixture_test(loop_signal_ends_an_iteration, setup),
        fixture_test(loop_runs_until_stopped, setup),
        fixture_test(loop_epoll_error_is_returned, setup),
        fixture_test(loop_pulse_tells_if_it_works, setup),
        fixture_test(loop_pulse_counts_work_outside_iterations, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
