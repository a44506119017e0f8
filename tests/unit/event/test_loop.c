/* SPDX-License-Identifier: Apache-2.0 */
#include "event/loop.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "unit/event/loop.h"
#include "unit/test.h"

enum { SAID_MAX = 64, LONG_MS = 10000 };

static struct mk_loop loop;
static char said[SAID_MAX];
static size_t n_said;

static void say(char c)
{
    assert_true(n_said < SAID_MAX - 1);
    said[n_said++] = c;
}

static int start(void **state)
{
    (void)state;
    n_said = 0;
    memset(said, 0, sizeof said);
    loop_begin(&loop);
    return 0;
}

/* A pipe whose read end is watched. */
struct ear {
    struct mk_fd_watch watch;
    int ends[2];
    char name;
    uint32_t events;
    struct mk_loop_task *defers;
    struct ear *deafens;
};

static void on_ready(struct mk_fd_watch *w, uint32_t events)
{
    struct ear *e = MK_CONTAINER(w, struct ear, watch);
    e->events = events;
    say(e->name);
    if (e->defers)
        mk_loop_defer(&loop, e->defers);
    if (e->deafens)
        mk_loop_remove(&loop, e->deafens->ends[0]);
}

static struct ear *open_ear(struct ear *e, char name, uint32_t events)
{
    *e = (struct ear){.watch.on_ready = on_ready, .name = name};
    assert_int_equal(pipe2(e->ends, O_NONBLOCK | O_CLOEXEC), 0);
    assert_int_equal(mk_loop_add(&loop, e->ends[0], &e->watch, events), 0);
    return e;
}

static void close_ear(struct ear *e)
{
    close(e->ends[0]);
    close(e->ends[1]);
}

static void speak(struct ear *e)
{
    assert_int_equal(write(e->ends[1], "x", 1), 1);
}

static void turn(int max_wait_ms)
{
    assert_int_equal(mk_loop_run_once(&loop, max_wait_ms), 0);
}

static void loop_ready_descriptor_is_reported(void **state)
{
    (void)state;
    struct ear a;
    open_ear(&a, 'a', EPOLLIN);
    turn(0);
    assert_string_equal(said, "");
    speak(&a);
    turn(LONG_MS);
    assert_string_equal(said, "a");
    assert_int_equal(a.events, EPOLLIN);
    turn(0);
    assert_string_equal(said, "aa"); /* still unread */
    mk_loop_remove(&loop, a.ends[0]);
    turn(0);
    assert_string_equal(said, "aa");
    close_ear(&a);
}

static void loop_edge_is_reported_once(void **state)
{
    (void)state;
    struct ear a;
    open_ear(&a, 'a', EPOLLIN | EPOLLET);
    speak(&a);
    turn(LONG_MS);
    turn(0);
    assert_string_equal(said, "a");
    speak(&a);
    turn(LONG_MS);
    assert_string_equal(said, "aa");
    close(a.ends[1]);
    turn(LONG_MS);
    assert_true(a.events & EPOLLHUP);
    close(a.ends[0]);
    turn(0);
    assert_string_equal(said, "aaa");
}

static void loop_descriptor_cannot_be_added_twice(void **state)
{
    (void)state;
    struct ear a;
    open_ear(&a, 'a', EPOLLIN);
    assert_int_equal(mk_loop_add(&loop, a.ends[0], &a.watch, EPOLLIN), -EEXIST);
    close_ear(&a);
    assert_int_equal(mk_loop_add(&loop, a.ends[0], &a.watch, EPOLLIN), -EBADF);
}

/* ---- Deferred tasks ---- */

struct chore {
    struct mk_loop_task task;
    char name;
    unsigned again; /* how often it defers itself again */
    struct mk_loop_task *defers;
};

static void run(struct mk_loop_task *t)
{
    struct chore *c = MK_CONTAINER(t, struct chore, task);
    say(c->name);
    if (c->defers)
        mk_loop_defer(&loop, c->defers);
    if (c->again) {
        c->again--;
        mk_loop_defer(&loop, &c->task);
    }
}

static struct chore chore(char name)
{
    return (struct chore){.task.run = run, .name = name};
}

static void loop_deferred_tasks_run_after_all_events(void **state)
{
    (void)state;
    struct ear a, b;
    struct chore one = chore('1'), two = chore('2');
    open_ear(&a, 'a', EPOLLIN | EPOLLET)->defers = &one.task;
    open_ear(&b, 'a', EPOLLIN | EPOLLET)->defers = &two.task;
    speak(&a);
    speak(&b);
    turn(LONG_MS);
    assert_memory_equal(said, "aa", 2);
    assert_int_equal(n_said, 4);
    assert_true(strchr(said, '1') && strchr(said, '2'));
    turn(0);
    assert_int_equal(n_said, 4);
    close_ear(&a);
    close_ear(&b);
}

static void loop_task_deferred_by_a_task_runs_after_the_others(void **state)
{
    (void)state;
    struct ear a;
    struct chore always = chore('1'), other = chore('2');
    open_ear(&a, 'a', EPOLLIN | EPOLLET);
    always.again = 3;
    always.defers = &other.task;
    mk_loop_defer(&loop, &always.task);
    speak(&a);
    turn(LONG_MS); /* the loop does not sleep while there is work */
    assert_string_equal(said, "a1");
    speak(&a);
    always.defers = NULL;
    turn(LONG_MS);
    assert_int_equal(n_said, 5);
    assert_memory_equal(said, "a1a", 3);
    uint64_t before = mk_clock_ms();
    turn(LONG_MS);
    turn(LONG_MS);
    assert_true(mk_clock_ms() - before < LONG_MS / 2);
    assert_int_equal(n_said, 7);
    turn(0);
    assert_int_equal(n_said, 7);
    close_ear(&a);
}

static void loop_run_tasks_runs_all_tasks(void **state)
{
    (void)state;
    struct chore stubborn = chore('1');
    stubborn.again = 5;
    mk_loop_defer(&loop, &stubborn.task);
    mk_loop_run_tasks(&loop);
    assert_string_equal(said, "111111");
}

/* ---- Timers ---- */

static void on_due(struct mk_timer *t)
{
    (void)t;
    say('t');
}

static void loop_sleeps_until_the_next_timer(void **state)
{
    (void)state;
    struct mk_timer timer;
    mk_timer_init(&timer, on_due);
    mk_loop_set_timer(&loop, &timer, 50);
    uint64_t before = mk_clock_ms();
    while (!n_said)
        turn(LONG_MS);
    assert_in_range(mk_clock_ms() - before, 49, LONG_MS / 2);
    assert_true(loop.now_ms >= before + 49);
}

/* Regardless of how late the clock is. */
static void loop_timer_wakes_the_loop_once(void **state)
{
    (void)state;
    struct mk_timer timer;
    mk_timer_init(&timer, on_due);
    for (unsigned i = 1; i <= 20; i++) {
        mk_loop_set_timer(&loop, &timer, 5 + i);
        turn(LONG_MS);
        assert_int_equal(n_said, i);
    }
}

static void loop_iteration_waits_at_most_its_limit(void **state)
{
    (void)state;
    struct mk_timer timer;
    mk_timer_init(&timer, on_due);
    uint64_t before = mk_clock_us(); /* the other clock is coarse */
    turn(20);
    assert_in_range(mk_clock_us() - before, 19000, LONG_MS * 500);
    mk_loop_set_timer(&loop, &timer, LONG_MS);
    before = mk_clock_us();
    turn(20);
    assert_in_range(mk_clock_us() - before, 19000, LONG_MS * 500);
    assert_string_equal(said, "");
    mk_timer_stop(&timer);
}

/* ---- Wakeup ---- */

static void on_wakeup(struct mk_loop *l)
{
    assert_ptr_equal(l, &loop);
    say('!');
}

static void *ring_later(void *arg)
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
    assert_int_equal(pthread_create(&thread, NULL, ring_later, NULL), 0);
    turn(-1);
    assert_string_equal(said, "!");
    pthread_join(thread, NULL);
    turn(0);
    assert_string_equal(said, "!");
}

static void loop_wakeups_are_merged(void **state)
{
    (void)state;
    loop.on_wakeup = on_wakeup;
    for (int i = 0; i < 1000; i++)
        mk_loop_wakeup(&loop);
    turn(LONG_MS);
    turn(0);
    assert_string_equal(said, "!");
}

static void loop_wakeup_without_callback_is_consumed(void **state)
{
    (void)state;
    mk_loop_wakeup(&loop);
    turn(LONG_MS);
    uint64_t before = mk_clock_us();
    turn(20);
    assert_true(mk_clock_us() - before >= 19000); /* the wakeup is consumed */
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
    turn(LONG_MS);
    assert_in_range(mk_clock_ms() - before, 10, LONG_MS / 2);
    sigaction(SIGALRM, &old, NULL);
}

static void stop_loop(struct mk_loop_task *t)
{
    (void)t;
    say('s');
    mk_loop_stop(&loop);
}

static void loop_runs_until_stopped(void **state)
{
    (void)state;
    struct ear a;
    struct mk_loop_task stopping = {.run = stop_loop};
    open_ear(&a, 'a', EPOLLIN | EPOLLET)->defers = &stopping;
    speak(&a);
    assert_int_equal(mk_loop_run(&loop), 0);
    assert_string_equal(said, "as");
    close_ear(&a);
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
    mk_loop_heartbeat(&loop, true); /* other work */
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
        assert_true(pulse_at_work > before); /* another value for each iteration */
        before = pulse_at_work;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(loop_ready_descriptor_is_reported, start, harness_stop),
        cmocka_unit_test_setup_teardown(loop_edge_is_reported_once, start, harness_stop),
        cmocka_unit_test_setup_teardown(loop_descriptor_cannot_be_added_twice, start, harness_stop),
        cmocka_unit_test_setup_teardown(loop_deferred_tasks_run_after_all_events, start, harness_stop),
        cmocka_unit_test_setup_teardown(loop_task_deferred_by_a_task_runs_after_the_others, start,
                                        harness_stop),
        cmocka_unit_test_setup_teardown(loop_run_tasks_runs_all_tasks, start, harness_stop),
        cmocka_unit_test_setup_teardown(loop_sleeps_until_the_next_timer, start, harness_stop),
        cmocka_unit_test_setup_teardown(loop_timer_wakes_the_loop_once, start, harness_stop),
        cmocka_unit_test_setup_teardown(loop_iteration_waits_at_most_its_limit, start, harness_stop),
        cmocka_unit_test_setup_teardown(loop_is_woken_by_another_thread, start, harness_stop),
        cmocka_unit_test_setup_teardown(loop_wakeups_are_merged, start, harness_stop),
        cmocka_unit_test_setup_teardown(loop_wakeup_without_callback_is_consumed, start, harness_stop),
        cmocka_unit_test_setup_teardown(loop_signal_ends_an_iteration, start, harness_stop),
        cmocka_unit_test_setup_teardown(loop_runs_until_stopped, start, harness_stop),
        cmocka_unit_test_setup_teardown(loop_epoll_error_is_returned, start, harness_stop),
        cmocka_unit_test_setup_teardown(loop_pulse_tells_if_it_works, start, harness_stop),
        cmocka_unit_test_setup_teardown(loop_pulse_counts_work_outside_iterations, start, harness_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
