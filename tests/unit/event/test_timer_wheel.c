/* SPDX-License-Identifier: Apache-2.0 */
#include "event/timer_wheel.h"

#include <stdlib.h>

#include "unit/test.h"

enum { FIRED_MAX = 64 };

static const uint64_t starts[] = {0, 31, 1000000, UINT32_MAX - 700, UINT32_MAX, ((uint64_t)7 << 32) - 1};

/* A timer that records when it fired, and may then stop or set another one. */
struct test_timer {
    struct mk_timer timer;
    char name;
    uint64_t fired_ms;
    unsigned n_fired;
    struct mk_timer *stops, *sets;
    uint32_t after_ms;
};

static struct mk_timer_wheel wheel;
static uint64_t now;
static char fired[FIRED_MAX];
static size_t n_fired;

static void on_due(struct mk_timer *t)
{
    struct test_timer *b = MK_CONTAINER(t, struct test_timer, timer);
    b->fired_ms = now;
    b->n_fired++;
    assert_true(n_fired < FIRED_MAX - 1);
    fired[n_fired++] = b->name;
    if (b->stops)
        mk_timer_stop(b->stops);
    if (b->sets)
        mk_timer_wheel_set(&wheel, b->sets, now, b->after_ms);
}

static size_t n_silent;

static void on_silent_due(struct mk_timer *t)
{
    (void)t;
    n_silent++;
}

static void begin_at(uint64_t time)
{
    now = time;
    n_fired = 0;
    memset(fired, 0, sizeof fired);
    mk_timer_wheel_init(&wheel, now);
}

static struct test_timer test_timer(char name)
{
    return (struct test_timer){.name = name};
}

static void set(struct test_timer *b, uint32_t after_ms)
{
    if (!b->timer.on_due)
        mk_timer_init(&b->timer, on_due);
    mk_timer_wheel_set(&wheel, &b->timer, now, after_ms);
}

static void run_at(uint64_t time)
{
    now = time;
    mk_timer_wheel_advance(&wheel, now);
}

/* Sleeps as a loop does, as long as the wheel says, at most `steps` times. Returns false if there was nothing
 * to wait for. */
static bool sleep_until(const struct test_timer *b, unsigned steps)
{
    while (!b->n_fired && steps-- > 0) {
        int wait = mk_timer_wheel_wait(&wheel, now);
        if (wait < 0)
            return false;
        run_at(now + (unsigned)wait);
    }
    return b->n_fired > 0;
}

static void timer_fires_on_time_or_one_tick_later(void **state)
{
    (void)state;
    static const uint32_t spans[] = {0, 1, 31, 32, 33, 1000, 16000, 16383, 16384, 16385, 60000, 86400000};
    for (size_t i = 0; i < MK_LEN(starts); i++)
        for (size_t j = 0; j < MK_LEN(spans); j++) {
            struct test_timer b = test_timer('b');
            begin_at(starts[i]);
            set(&b, spans[j]);
            uint64_t due = now + spans[j];
            assert_true(sleep_until(&b, 6000));
            if (b.fired_ms < due || b.fired_ms > due + MK_TIMER_TICK_MS)
                fail_msg("set at %llu for %u: %lld late", (unsigned long long)starts[i], spans[j],
                         (long long)(b.fired_ms - due));
            assert_int_equal(mk_timer_wheel_wait(&wheel, now), -1);
        }
}

static void timer_can_be_24_days_ahead(void **state)
{
    (void)state;
    const uint32_t farthest = INT32_MAX;
    for (size_t i = 0; i < MK_LEN(starts); i++) {
        struct test_timer b = test_timer('b');
        begin_at(starts[i]);
        set(&b, farthest);
        assert_true(sleep_until(&b, farthest / (MK_TIMER_TICK_MS * (MK_TIMER_SLOTS - 2)) + 2));
        assert_in_range(b.fired_ms - starts[i], farthest, (uint64_t)farthest + MK_TIMER_TICK_MS);
    }
}

static void timer_wheel_empty_waits_forever(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(starts); i++) {
        begin_at(starts[i]);
        assert_int_equal(mk_timer_wheel_wait(&wheel, now), -1);
        run_at(now + 100000);
        assert_int_equal(mk_timer_wheel_wait(&wheel, now), -1);
    }
}

static void timer_wheel_wait_ends_at_the_first_timer(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(starts); i++) {
        struct test_timer late = test_timer('l'), early = test_timer('e');
        begin_at(starts[i]);
        set(&late, 5000);
        set(&early, 500);
        int wait = mk_timer_wheel_wait(&wheel, now);
        assert_in_range(wait, 500, 500 + MK_TIMER_TICK_MS);
        assert_int_equal(mk_timer_wheel_wait(&wheel, now + 100), wait - 100);
        assert_int_equal(mk_timer_wheel_wait(&wheel, now + 10000), 0);
    }
}

/* Sets a timer after the wheel has slept for a long time, as it does without timers. */
static void timer_wheel_works_after_a_long_sleep(void **state)
{
    (void)state;
    static const uint64_t sleeps[] = {100, 20000, 3600000, (uint64_t)1 << 31, (uint64_t)40 * 86400000};
    for (size_t i = 0; i < MK_LEN(starts); i++)
        for (size_t j = 0; j < MK_LEN(sleeps); j++) {
            struct test_timer b = test_timer('b');
            begin_at(starts[i]);
            now += sleeps[j];
            uint64_t due = now + 1000;
            set(&b, 1000);
            run_at(now); /* an event has set the timer, and the iteration ends */
            assert_int_equal(b.n_fired, 0);
            assert_true(sleep_until(&b, 10));
            assert_in_range(b.fired_ms, due, due + MK_TIMER_TICK_MS);
        }
}

static void timer_wheel_due_timers_fire_in_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(starts); i++) {
        struct test_timer a = test_timer('a'), b = test_timer('b'), c = test_timer('c'), d = test_timer('d');
        begin_at(starts[i]);
        set(&c, 3000);
        set(&a, 1000);
        set(&d, 9000);
        set(&b, 2000);
        run_at(now + 999);
        assert_string_equal(fired, "");
        run_at(now + 4000);
        assert_string_equal(fired, "abc");
        run_at(now + 9000);
        assert_string_equal(fired, "abcd");
        run_at(now + 100000);
        assert_string_equal(fired, "abcd");
    }
}

static void timer_wheel_all_due_timers_fire_after_a_long_iteration(void **state)
{
    (void)state;
    static struct mk_timer timers[MK_TIMER_SLOTS];
    for (size_t i = 0; i < MK_LEN(starts); i++) {
        begin_at(starts[i]);
        for (uint32_t j = 0; j < MK_TIMER_SLOTS; j++) {
            mk_timer_init(&timers[j], on_silent_due);
            mk_timer_wheel_set(&wheel, &timers[j], now, j * MK_TIMER_TICK_MS);
        }
        n_silent = 0;
        run_at(now + 2 * MK_TIMER_SLOTS * MK_TIMER_TICK_MS);
        while (mk_timer_wheel_wait(&wheel, now) == 0)
            run_at(now);
        assert_int_equal(n_silent, MK_TIMER_SLOTS);
    }
}

enum { MANY = 3 * MK_TIMER_WHEEL_AT_ONCE };

static struct mk_timer many_timers[MANY];

/* Sets many timers that are due at the same time. */
static void set_many_timers(uint32_t ms)
{
    n_silent = 0;
    for (size_t i = 0; i < MANY; i++) {
        mk_timer_init(&many_timers[i], on_silent_due);
        mk_timer_wheel_set(&wheel, &many_timers[i], now, ms);
    }
}

static void timer_wheel_many_due_timers_fire_in_several_iterations(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(starts); i++) {
        struct test_timer b = test_timer('b');
        begin_at(starts[i]);
        set_many_timers(100);
        set(&b, 1000);
        run_at(now + 200);
        assert_int_equal(n_silent, MK_TIMER_WHEEL_AT_ONCE);
        /* timers are due, so the loop does not sleep */
        assert_int_equal(mk_timer_wheel_wait(&wheel, now), 0);
        /* due timers fire even if the clock does not advance */
        run_at(now);
        assert_int_equal(n_silent, 2 * MK_TIMER_WHEEL_AT_ONCE);
        run_at(now + 1);
        assert_int_equal(n_silent, MANY);
        assert_in_range(mk_timer_wheel_wait(&wheel, now), 1, 1000);
        assert_true(sleep_until(&b, 2));
    }
}

/* Overdue timers stay on the wheel, like any others. */
static void timer_wheel_overdue_timers_can_be_stopped_and_set(void **state)
{
    (void)state;
    struct test_timer stopped = test_timer('s'), postponed = test_timer('p'), again = test_timer('a');
    begin_at(0);
    set_many_timers(100);
    set(&stopped, 100);
    set(&postponed, 100);
    set(&again, 100);
    run_at(200);
    mk_timer_stop(&stopped.timer);
    set(&postponed, 1000);
    set(&again, 0);
    for (int i = 0; i < 4; i++)
        run_at(now + 1);
    assert_int_equal(n_silent, MANY);
    assert_string_equal(fired, "a");
    run_at(1199);
    assert_string_equal(fired, "a");
    run_at(1200 + MK_TIMER_TICK_MS);
    assert_string_equal(fired, "ap");
}

/* Active connections postpone their timers: moving these does not count toward the limit. */
static void timer_wheel_postponed_timers_do_not_count_towards_the_limit(void **state)
{
    (void)state;
    struct test_timer b = test_timer('b');
    begin_at(0);
    set_many_timers(100);
    for (size_t i = 0; i < MANY; i++)
        mk_timer_wheel_set(&wheel, &many_timers[i], now, 5000);
    set(&b, 100);
    run_at(200);
    assert_string_equal(fired, "b");
    assert_int_equal(n_silent, 0);
}

static void timer_set_in_the_past_fires_soon(void **state)
{
    (void)state;
    struct mk_timer timer;
    mk_timer_init(&timer, on_silent_due);
    begin_at(100000);
    mk_timer_wheel_set(&wheel, &timer, now - 5000, 100);
    n_silent = 0;
    run_at(now + MK_TIMER_TICK_MS);
    assert_int_equal(n_silent, 1);
}

static void timer_postponing_only_stores_the_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(starts); i++) {
        struct test_timer b = test_timer('b');
        begin_at(starts[i]);
        set(&b, 1000);
        const struct mk_timer_link *before = b.timer.link.next;
        uint32_t slot_ms = b.timer.slot_ms;
        for (int n = 0; n < 50; n++) {
            run_at(now + 500);
            set(&b, 1000);
            if (n == 0) {
                assert_ptr_equal(b.timer.link.next, before);
                assert_int_equal(b.timer.slot_ms, slot_ms);
            }
        }
        assert_int_equal(b.n_fired, 0);
        uint64_t due = now + 1000;
        assert_true(sleep_until(&b, 10));
        assert_in_range(b.fired_ms, due, due + MK_TIMER_TICK_MS);
        assert_int_equal(b.n_fired, 1);
    }
}

static void timer_moved_earlier_fires_earlier(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(starts); i++) {
        struct test_timer b = test_timer('b');
        begin_at(starts[i]);
        set(&b, 60000);
        run_at(now + 100);
        set(&b, 50);
        uint64_t due = now + 50;
        assert_true(sleep_until(&b, 2));
        assert_in_range(b.fired_ms, due, due + MK_TIMER_TICK_MS);
        run_at(now + 100000);
        assert_int_equal(b.n_fired, 1);
    }
}

static void timer_stopped_does_not_fire(void **state)
{
    (void)state;
    struct test_timer b = test_timer('b');
    begin_at(0);
    set(&b, 100);
    mk_timer_stop(&b.timer);
    mk_timer_stop(&b.timer);
    run_at(1000);
    assert_int_equal(b.n_fired, 0);
    set(&b, 100);
    run_at(2000);
    assert_int_equal(b.n_fired, 1);
    mk_timer_stop(&b.timer);
}

static void timer_zero_initialized_is_not_set(void **state)
{
    (void)state;
    struct mk_timer t = {.on_due = on_due};
    assert_false(mk_timer_is_set(&t));
    mk_timer_stop(&t);
    begin_at(0);
    mk_timer_wheel_set(&wheel, &t, now, 100);
    assert_true(mk_timer_is_set(&t));
    mk_timer_stop(&t);
    assert_false(mk_timer_is_set(&t));
}

static void timer_callback_can_stop_others(void **state)
{
    (void)state;
    struct test_timer a = test_timer('a'), same_slot = test_timer('s'), later = test_timer('l');
    begin_at(0);
    set(&a, 100);
    set(&same_slot, 100);
    a.stops = &same_slot.timer;
    run_at(1000);
    assert_string_equal(fired, "a");
    set(&a, 100);
    set(&later, 500);
    a.stops = &later.timer;
    run_at(5000);
    assert_string_equal(fired, "aa");
    a.stops = &a.timer;
    set(&a, 100);
    run_at(6000);
    assert_string_equal(fired, "aaa");
}

static void timer_callback_can_set_itself(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(starts); i++) {
        struct test_timer a = test_timer('a');
        begin_at(starts[i]);
        set(&a, 100);
        a.sets = &a.timer;
        a.after_ms = 0; /* the timer fires in the next iteration, not again in this one */
        run_at(now + 200);
        assert_string_equal(fired, "a");
        run_at(now + MK_TIMER_TICK_MS);
        assert_string_equal(fired, "aa");
        a.after_ms = 1000;
        run_at(now + MK_TIMER_TICK_MS);
        run_at(now + 999);
        assert_string_equal(fired, "aaa");
        run_at(now + 1 + MK_TIMER_TICK_MS);
        assert_string_equal(fired, "aaaa");
    }
}

static void timer_callback_can_set_others(void **state)
{
    (void)state;
    struct test_timer a = test_timer('a'), b = test_timer('b'), c = test_timer('c');
    begin_at(0);
    set(&a, 100);
    set(&b, 100);
    a.sets = &b.timer; /* b is due in this iteration, but a postpones it */
    a.after_ms = 1000;
    run_at(200);
    assert_string_equal(fired, "a");
    run_at(1200 + MK_TIMER_TICK_MS);
    assert_string_equal(fired, "ab");
    a.sets = &c.timer; /* c has not been set so far */
    mk_timer_init(&c.timer, on_due);
    a.after_ms = 50;
    set(&a, 10);
    run_at(2000);
    assert_string_equal(fired, "aba");
    run_at(2050 + MK_TIMER_TICK_MS);
    assert_string_equal(fired, "abac");
}

/* Models the wheel as a list of times. */
enum { TIMERS = 40, STEPS = 20000 };

struct model {
    struct test_timer modeled[TIMERS];
    uint64_t due[TIMERS]; /* 0: not set */
};

static void check_model(struct model *m)
{
    for (size_t i = 0; i < TIMERS; i++) {
        struct test_timer *b = &m->modeled[i];
        if (b->n_fired) {
            assert_int_equal(b->n_fired, 1);
            assert_true(m->due[i] && now >= m->due[i]);
            m->due[i] = 0;
            b->n_fired = 0;
        }
        if (m->due[i] && now >= m->due[i] + MK_TIMER_TICK_MS)
            fail_msg("timer %zu is %llu ms late", i, (unsigned long long)(now - m->due[i]));
    }
    n_fired = 0;
}

static void move_something(struct model *m)
{
    size_t i = (size_t)rand() % TIMERS;
    if (rand() % 4 == 0) {
        if (m->due[i])
            mk_timer_stop(&m->modeled[i].timer);
        m->due[i] = 0;
        return;
    }
    uint32_t span = (uint32_t)rand() % (rand() % 3 ? 2000 : 40000);
    set(&m->modeled[i], span);
    m->due[i] = now + span;
}

static void timer_wheel_random_timers_fire_once_on_time(void **state)
{
    (void)state;
    for (size_t start = 0; start < MK_LEN(starts); start++) {
        static struct model m;
        memset(&m, 0, sizeof m);
        srand((unsigned)start);
        begin_at(starts[start]);
        for (int step = 0; step < STEPS; step++) {
            for (int n = rand() % 4; n > 0; n--)
                move_something(&m);
            int wait = mk_timer_wheel_wait(&wheel, now), other = rand() % 100;
            run_at(now + (unsigned)(wait >= 0 && wait < other ? wait : other));
            check_model(&m);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timer_fires_on_time_or_one_tick_later),
        cmocka_unit_test(timer_can_be_24_days_ahead),
        cmocka_unit_test(timer_wheel_empty_waits_forever),
        cmocka_unit_test(timer_wheel_wait_ends_at_the_first_timer),
        cmocka_unit_test(timer_wheel_works_after_a_long_sleep),
        cmocka_unit_test(timer_wheel_due_timers_fire_in_order),
        cmocka_unit_test(timer_wheel_all_due_timers_fire_after_a_long_iteration),
        cmocka_unit_test(timer_wheel_many_due_timers_fire_in_several_iterations),
        cmocka_unit_test(timer_wheel_overdue_timers_can_be_stopped_and_set),
        cmocka_unit_test(timer_wheel_postponed_timers_do_not_count_towards_the_limit),
        cmocka_unit_test(timer_set_in_the_past_fires_soon),
        cmocka_unit_test(timer_postponing_only_stores_the_time),
        cmocka_unit_test(timer_moved_earlier_fires_earlier),
        cmocka_unit_test(timer_stopped_does_not_fire),
        cmocka_unit_test(timer_zero_initialized_is_not_set),
        cmocka_unit_test(timer_callback_can_stop_others),
        cmocka_unit_test(timer_callback_can_set_itself),
        cmocka_unit_test(timer_callback_can_set_others),
        cmocka_unit_test(timer_wheel_random_timers_fire_once_on_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
