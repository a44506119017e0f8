/* SPDX-License-Identifier: Apache-2.0 */
#include "lifecycle.h"

#include <signal.h>

#include "unit/child.h"
#include "unit/state_machine.h"

enum { NOW = 1000000 };

static struct isolate_lifecycle lifecycle;

static void setup(void)
{
    lifecycle = (struct isolate_lifecycle){0};
    mk_state_init(&lifecycle.state, &isolate_lifecycle_machine, ISOLATE_DOWN);
    mk_state_init(&lifecycle.pending, &isolate_lifecycle_pending_machine, ISOLATE_PENDING_START);
}

static void expect(enum isolate_state state, enum isolate_pending pending)
{
    assert_int_equal(lifecycle.state.current, state);
    assert_int_equal(lifecycle.pending.current, pending);
}

static void lifecycle_state_machine_has_these_transitions(void **state)
{
    (void)state;
    expect_state_machine(&isolate_lifecycle_machine, "down: starting, ended\n"
                                                     "starting: down, serving, restarting, draining\n"
                                                     "serving: down, draining\n"
                                                     "restarting: down, draining\n"
                                                     "draining: ended\n"
                                                     "ended\n");
    expect_state_machine(&isolate_lifecycle_pending_machine, "start: reload, reload begun, none\n"
                                                             "reload: reload, reload begun, none\n"
                                                             "reload begun: reload, reload begun, none\n"
                                                             "none: reload, reload begun\n");
}

/* ---- Helpers that enter each state ---- */

static void on_down_state(void)
{
}

static void start_process(void)
{
    assert_int_equal(isolate_lifecycle_due_action(&lifecycle, NOW), ISOLATE_DUE_START);
    isolate_lifecycle_started(&lifecycle, NOW, true);
}

static void serve(void)
{
    start_process();
    assert_true(isolate_lifecycle_ready(&lifecycle));
    assert_int_equal(isolate_lifecycle_pop_reply(&lifecycle), ISOLATE_START);
}

static void restart(void)
{
    start_process();
    isolate_lifecycle_restart(&lifecycle);
}

static void drain(void)
{
    serve();
    assert_int_equal(isolate_lifecycle_shut_down(&lifecycle, NOW, SIGQUIT), SIGQUIT);
}

static void end(void)
{
    assert_int_equal(isolate_lifecycle_shut_down(&lifecycle, NOW, SIGQUIT), 0);
}

static void (*const reach[ISOLATE_STATES])(void) = {
    [ISOLATE_DOWN] = on_down_state, [ISOLATE_STARTING] = start_process, [ISOLATE_SERVING] = serve,
    [ISOLATE_RESTARTING] = restart, [ISOLATE_DRAINING] = drain,         [ISOLATE_ENDED] = end,
};

static void enter(enum isolate_state state)
{
    setup();
    reach[state]();
    assert_int_equal(lifecycle.state.current, state);
}

/* ---- Commands in each state ---- */

static void lifecycle_reload_depends_on_state(void **state)
{
    static const struct {
        int signal;
        enum isolate_state then;
        enum isolate_pending pending;
    } rules[ISOLATE_STATES] = {
        [ISOLATE_DOWN] = {0, ISOLATE_DOWN, ISOLATE_PENDING_RELOAD_BEGUN},
        [ISOLATE_STARTING] = {SIGKILL, ISOLATE_RESTARTING, ISOLATE_PENDING_RELOAD_BEGUN},
        [ISOLATE_SERVING] = {SIGHUP, ISOLATE_SERVING, ISOLATE_PENDING_RELOAD},
        [ISOLATE_RESTARTING] = {0, ISOLATE_RESTARTING, ISOLATE_PENDING_RELOAD_BEGUN},
        [ISOLATE_DRAINING] = {0, ISOLATE_DRAINING, ISOLATE_PENDING_NONE},
        [ISOLATE_ENDED] = {0, ISOLATE_ENDED, ISOLATE_PENDING_START},
    };
    (void)state;
    for (unsigned i = 0; i < ISOLATE_STATES; i++) {
        enter((enum isolate_state)i);
        lifecycle.start_ms = NOW + 1;
        assert_int_equal(isolate_lifecycle_reload(&lifecycle), rules[i].signal);
        expect(rules[i].then, rules[i].pending);
        if (i == ISOLATE_DOWN) /* the restart delay has passed */
            assert_int_equal(isolate_lifecycle_due_action(&lifecycle, NOW), ISOLATE_DUE_START);
    }
}

static void lifecycle_end_depends_on_state(void **state)
{
    static const struct {
        int signal;
        enum isolate_state then;
    } rules[ISOLATE_STATES] = {
        [ISOLATE_DOWN] = {0, ISOLATE_ENDED},
        [ISOLATE_STARTING] = {SIGKILL, ISOLATE_DRAINING},
        [ISOLATE_SERVING] = {SIGQUIT, ISOLATE_DRAINING},
        [ISOLATE_RESTARTING] = {SIGKILL, ISOLATE_DRAINING},
        [ISOLATE_DRAINING] = {SIGQUIT, ISOLATE_DRAINING},
        [ISOLATE_ENDED] = {0, ISOLATE_ENDED},
    };
    (void)state;
    for (unsigned i = 0; i < ISOLATE_STATES; i++) {
        enter((enum isolate_state)i);
        assert_int_equal(isolate_lifecycle_shut_down(&lifecycle, NOW, SIGQUIT), rules[i].signal);
        assert_int_equal(lifecycle.state.current, rules[i].then);
    }
}

static void lifecycle_death_depends_on_state(void **state)
{
    static const struct {
        bool is_unexpected;
        enum isolate_state then;
    } rules[ISOLATE_STATES] = {
        [ISOLATE_STARTING] = {true, ISOLATE_DOWN},
        [ISOLATE_SERVING] = {true, ISOLATE_DOWN},
        [ISOLATE_RESTARTING] = {false, ISOLATE_DOWN},
        [ISOLATE_DRAINING] = {false, ISOLATE_ENDED},
    };
    (void)state;
    for (unsigned i = ISOLATE_STARTING; i < ISOLATE_ENDED; i++) {
        enter((enum isolate_state)i);
        assert_int_equal(isolate_lifecycle_died(&lifecycle, NOW), rules[i].is_unexpected);
        assert_int_equal(lifecycle.state.current, rules[i].then);
        if (rules[i].then == ISOLATE_DOWN)
            assert_int_equal(isolate_lifecycle_due_action(&lifecycle, NOW), ISOLATE_DUE_START);
    }
}

static void lifecycle_ready_counts_while_starting_or_serving(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ISOLATE_STATES; i++) {
        enter((enum isolate_state)i);
        bool counts = i == ISOLATE_STARTING || i == ISOLATE_SERVING;
        assert_int_equal(isolate_lifecycle_ready(&lifecycle), counts);
        assert_int_equal(lifecycle.state.current, counts ? ISOLATE_SERVING : i);
    }
}

/* The killed process had the old configuration. */
static void lifecycle_ready_of_killed_process_completes_no_reload(void **state)
{
    (void)state;
    start_process();
    assert_int_equal(isolate_lifecycle_reload(&lifecycle), SIGKILL);
    assert_false(isolate_lifecycle_ready(&lifecycle));
    assert_false(isolate_lifecycle_died(&lifecycle, NOW));
    start_process();
    assert_true(isolate_lifecycle_ready(&lifecycle));
    assert_int_equal(isolate_lifecycle_pop_reply(&lifecycle), ISOLATE_RELOAD);
    assert_int_equal(isolate_lifecycle_pop_reply(&lifecycle), 0);
}

static void lifecycle_reload_completes_after_begin_and_ready(void **state)
{
    (void)state;
    serve();
    isolate_lifecycle_reloading(&lifecycle); /* a reload without a command */
    expect(ISOLATE_SERVING, ISOLATE_PENDING_NONE);
    (void)isolate_lifecycle_reload(&lifecycle);
    assert_false(isolate_lifecycle_ready(&lifecycle)); /* this READY=1 belongs to the previous start */
    isolate_lifecycle_reloading(&lifecycle);
    (void)isolate_lifecycle_reload(&lifecycle); /* another command starts the reload again */
    assert_false(isolate_lifecycle_ready(&lifecycle));
    isolate_lifecycle_reloading(&lifecycle);
    assert_true(isolate_lifecycle_ready(&lifecycle));
    assert_int_equal(isolate_lifecycle_pop_reply(&lifecycle), ISOLATE_RELOAD);
    (void)isolate_lifecycle_reload(&lifecycle);
    assert_int_equal(isolate_lifecycle_shut_down(&lifecycle, NOW, SIGQUIT),
                     SIGTERM); /* SIGQUIT would wait for the reload */
}

/* ---- Time limits ---- */

static void expect_due(uint64_t at_ms, enum isolate_due due)
{
    assert_int_equal(isolate_lifecycle_due_action(&lifecycle, at_ms - 1), ISOLATE_DUE_NOTHING);
    assert_int_equal(isolate_lifecycle_due_action(&lifecycle, at_ms), due);
    assert_int_equal(isolate_lifecycle_timeout_ms(&lifecycle, at_ms - 1), 1);
    assert_int_equal(isolate_lifecycle_timeout_ms(&lifecycle, at_ms), 0);
    assert_int_equal(isolate_lifecycle_timeout_ms(&lifecycle, at_ms + 1), 0);
}

static void lifecycle_starting_and_draining_have_deadlines(void **state)
{
    (void)state;
    enter(ISOLATE_STARTING);
    expect_due(NOW + 60000, ISOLATE_DUE_KILL_START);
    enter(ISOLATE_DRAINING);
    expect_due(NOW + 70000, ISOLATE_DUE_KILL);
    /* A second command does not extend the limit. */
    (void)isolate_lifecycle_shut_down(&lifecycle, NOW + 5, SIGTERM);
    expect_due(NOW + 70000, ISOLATE_DUE_KILL);
    static const enum isolate_state none[] = {ISOLATE_SERVING, ISOLATE_RESTARTING, ISOLATE_ENDED};
    for (size_t i = 0; i < MK_LEN(none); i++) {
        enter(none[i]);
        assert_int_equal(isolate_lifecycle_due_action(&lifecycle, UINT64_MAX - 1), ISOLATE_DUE_NOTHING);
        assert_true(isolate_lifecycle_timeout_ms(&lifecycle, NOW) == UINT64_MAX);
    }
}

static void lifecycle_early_deaths_back_off_up_to_limit(void **state)
{
    static const unsigned pauses[] = {0, 100, 200, 400, 800, 1600, 3200, 6400, 6400};
    (void)state;
    uint64_t now = NOW;
    for (size_t i = 0; i < MK_LEN(pauses); i++) {
        isolate_lifecycle_started(&lifecycle, now, true);
        assert_true(isolate_lifecycle_died(&lifecycle, now + 999));
        assert_int_equal(lifecycle.start_ms, now + 999 + pauses[i]);
    }
    isolate_lifecycle_started(&lifecycle, now, true);
    assert_true(isolate_lifecycle_died(&lifecycle, now + 1000));
    assert_int_equal(lifecycle.start_ms, now + 1000);
    isolate_lifecycle_started(&lifecycle, now, false); /* no process could be started */
    expect_due(now + 10000, ISOLATE_DUE_START);
}

static void move_to_serving(void *ctx)
{
    mk_state_move(&lifecycle.state, &isolate_lifecycle_machine, ctx, ISOLATE_SERVING);
}

static void lifecycle_down_cannot_become_serving(void **state)
{
    (void)state;
    assert_aborts(move_to_serving, &lifecycle,
                  "isolated group: no transition from state \"down\" to \"serving\"");
    enter(ISOLATE_DRAINING);
    lifecycle.end_ms = 0;
    assert_aborts(move_to_serving, &lifecycle, "isolated group in state \"draining\": it has a time to end");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(lifecycle_state_machine_has_these_transitions, setup),
        fixture_test(lifecycle_reload_depends_on_state, setup),
        fixture_test(lifecycle_end_depends_on_state, setup),
        fixture_test(lifecycle_death_depends_on_state, setup),
        fixture_test(lifecycle_ready_counts_while_starting_or_serving, setup),
        fixture_test(lifecycle_ready_of_killed_process_completes_no_reload, setup),
        fixture_test(lifecycle_reload_completes_after_begin_and_ready, setup),
        fixture_test(lifecycle_starting_and_draining_have_deadlines, setup),
        fixture_test(lifecycle_early_deaths_back_off_up_to_limit, setup),
        fixture_test(lifecycle_down_cannot_become_serving, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
