/* SPDX-License-Identifier: Apache-2.0 */
#include "server/lifecycle.h"

#include "unit/child.h"
#include "unit/state_machine.h"

static struct mk_lifecycle lifecycle;
static struct mk_lifecycle_workers workers;

static void setup(void)
{
    lifecycle = (struct mk_lifecycle){0};
    mk_state_init(&lifecycle.phase, &mk_lifecycle_machine, MK_PHASE_PREPARING_FIRST);
    workers = (struct mk_lifecycle_workers){.old_wanted = 2};
}

static void expect(enum mk_lifecycle_step step, enum mk_lifecycle_phase phase)
{
    assert_int_equal(mk_lifecycle_next_step(&lifecycle, &workers), step);
    assert_int_equal(lifecycle.phase.current, phase);
}

/* Expects no further step, however often the master polls. */
static void expect_nothing(enum mk_lifecycle_phase phase)
{
    expect(MK_STEP_WAIT, phase);
    expect(MK_STEP_WAIT, phase);
}

/* Starts two workers of the first set. */
static void serve(void)
{
    mk_lifecycle_plugins_prepared(&lifecycle, true);
    expect(MK_STEP_START_FIRST, MK_PHASE_STARTING);
    workers =
        (struct mk_lifecycle_workers){.wanted = 2, .there = 2, .old_wanted = 2, .old_there = 2, .all = 2};
    mk_lifecycle_workers_started(&lifecycle, true);
    expect_nothing(MK_PHASE_STARTING);
    workers.ready = 2;
    expect(MK_STEP_SERVE, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
}

static void try_reload(void)
{
    serve();
    mk_lifecycle_request_reload(&lifecycle);
    expect(MK_STEP_START_TRIAL, MK_PHASE_TRYING);
    expect_nothing(MK_PHASE_TRYING);
}

static void prepare_reload(void)
{
    try_reload();
    mk_lifecycle_trial_done(&lifecycle, true);
    expect(MK_STEP_LOAD, MK_PHASE_TRYING);
    mk_lifecycle_config_loaded(&lifecycle, true);
    expect_nothing(MK_PHASE_PREPARING);
}

/* Starts three new workers in addition to the two old ones. */
static void start_reload(void)
{
    prepare_reload();
    mk_lifecycle_plugins_prepared(&lifecycle, true);
    expect(MK_STEP_START_NEW, MK_PHASE_RELOADING);
    workers =
        (struct mk_lifecycle_workers){.wanted = 3, .there = 3, .old_wanted = 2, .old_there = 2, .all = 5};
    mk_lifecycle_workers_started(&lifecycle, true);
    expect_nothing(MK_PHASE_RELOADING);
}

static void hand_over(void)
{
    start_reload();
    workers.ready = 3;
    workers.accept_still = true;
    expect(MK_STEP_HAND_OVER, MK_PHASE_HANDING_OVER);
    expect_nothing(MK_PHASE_HANDING_OVER);
}

static void (*const reloading[])(void) = {try_reload, prepare_reload, start_reload};

/* ---- Starting ---- */

static void lifecycle_start_waits_until_all_workers_serve(void **state)
{
    (void)state;
    expect_nothing(MK_PHASE_PREPARING_FIRST);
    mk_lifecycle_plugins_prepared(&lifecycle, true);
    expect(MK_STEP_START_FIRST, MK_PHASE_STARTING);
    workers = (struct mk_lifecycle_workers){.wanted = 2, .there = 2, .ready = 1, .all = 2};
    expect_nothing(MK_PHASE_STARTING);
    workers.ready = 2;
    expect(MK_STEP_SERVE, MK_PHASE_SERVING);
}

static void lifecycle_start_with_failed_plugin_starts_no_workers(void **state)
{
    (void)state;
    mk_lifecycle_plugins_prepared(&lifecycle, false);
    expect(MK_STEP_FAIL, MK_PHASE_STARTING);
    assert_true(mk_lifecycle_begin_shutdown(&lifecycle, true).is_first);
    expect(MK_STEP_STOP, MK_PHASE_ENDING);
}

static void lifecycle_start_fails_if_fork_fails(void **state)
{
    (void)state;
    mk_lifecycle_plugins_prepared(&lifecycle, true);
    expect(MK_STEP_START_FIRST, MK_PHASE_STARTING);
    mk_lifecycle_workers_started(&lifecycle, false);
    expect(MK_STEP_FAIL, MK_PHASE_STARTING);
}

static void lifecycle_start_fails_after_early_death(void **state)
{
    (void)state;
    mk_lifecycle_plugins_prepared(&lifecycle, true);
    expect(MK_STEP_START_FIRST, MK_PHASE_STARTING);
    workers = (struct mk_lifecycle_workers){.wanted = 2, .there = 2, .ready = 2, .all = 2};
    mk_lifecycle_worker_died_early(&lifecycle);
    expect(MK_STEP_FAIL, MK_PHASE_STARTING);
}

static void lifecycle_reload_during_start_follows_start(void **state)
{
    (void)state;
    mk_lifecycle_request_reload(&lifecycle);
    expect_nothing(MK_PHASE_PREPARING_FIRST);
    mk_lifecycle_plugins_prepared(&lifecycle, true);
    expect(MK_STEP_START_FIRST, MK_PHASE_STARTING);
    workers = (struct mk_lifecycle_workers){.wanted = 1, .there = 1, .ready = 1, .all = 1};
    expect(MK_STEP_SERVE, MK_PHASE_SERVING);
    expect(MK_STEP_START_TRIAL, MK_PHASE_TRYING);
}

/* ---- Serving ---- */

static void lifecycle_early_death_while_serving_is_ignored(void **state)
{
    (void)state;
    serve();
    workers.there = workers.ready = workers.old_there = 1;
    mk_lifecycle_worker_died_early(&lifecycle);
    expect_nothing(MK_PHASE_SERVING);
}

static void lifecycle_upgrade_needs_serving(void **state)
{
    (void)state;
    for (unsigned phase = 0; phase < MK_PHASES; phase++) {
        mk_state_init(&lifecycle.phase, &mk_lifecycle_machine, phase);
        assert_int_equal(mk_lifecycle_may_upgrade(&lifecycle), phase == MK_PHASE_SERVING);
    }
}

/* ---- Reloading ---- */

static void lifecycle_reload_hands_over_when_all_new_workers_serve(void **state)
{
    (void)state;
    start_reload();
    workers.ready = 2;
    expect_nothing(MK_PHASE_RELOADING);
    workers.ready = 3;
    workers.there = 4; /* a worker drains while its replacement starts */
    expect_nothing(MK_PHASE_RELOADING);
    workers.there = 3;
    workers.accept_still = true;
    expect(MK_STEP_HAND_OVER, MK_PHASE_HANDING_OVER);
    expect_nothing(MK_PHASE_HANDING_OVER);
    workers.accept_still = false;
    expect(MK_STEP_FINISH, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
}

static void lifecycle_reload_without_old_workers_finishes_at_once(void **state)
{
    (void)state;
    start_reload();
    workers.ready = 3;
    expect(MK_STEP_HAND_OVER, MK_PHASE_HANDING_OVER);
    expect(MK_STEP_FINISH, MK_PHASE_SERVING);
}

static void lifecycle_handover_times_out(void **state)
{
    (void)state;
    hand_over();
    mk_lifecycle_old_workers_late(&lifecycle);
    expect(MK_STEP_FINISH, MK_PHASE_SERVING);
    mk_lifecycle_old_workers_late(&lifecycle); /* ignored, because the handover is over */
    workers.wanted = 2;
    workers.there = workers.ready = 2;
    mk_lifecycle_request_reload(&lifecycle);
    expect(MK_STEP_START_TRIAL, MK_PHASE_TRYING);
    assert_false(lifecycle.late);
}

static void lifecycle_handover_ignores_early_death(void **state)
{
    (void)state;
    hand_over();
    mk_lifecycle_worker_died_early(&lifecycle);
    expect_nothing(MK_PHASE_HANDING_OVER);
}

static void lifecycle_failed_reload_keeps_old_configuration(void **state)
{
    (void)state;
    try_reload();
    mk_lifecycle_trial_done(&lifecycle, false);
    expect(MK_STEP_REJECT, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
    setup();
    try_reload();
    mk_lifecycle_trial_done(&lifecycle, true);
    expect(MK_STEP_LOAD, MK_PHASE_TRYING);
    mk_lifecycle_config_loaded(&lifecycle, false);
    expect(MK_STEP_REJECT, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
    setup();
    prepare_reload();
    mk_lifecycle_plugins_prepared(&lifecycle, false);
    expect(MK_STEP_REJECT, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
    setup();
    start_reload();
    mk_lifecycle_worker_died_early(&lifecycle);
    expect(MK_STEP_ABANDON, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
}

static void lifecycle_reload_is_abandoned_if_fork_fails(void **state)
{
    (void)state;
    prepare_reload();
    mk_lifecycle_plugins_prepared(&lifecycle, true);
    expect(MK_STEP_START_NEW, MK_PHASE_RELOADING);
    mk_lifecycle_workers_started(&lifecycle, false);
    expect(MK_STEP_ABANDON, MK_PHASE_SERVING);
}

/* An early death counts even if the other workers serve. */
static void lifecycle_reload_is_abandoned_after_early_death(void **state)
{
    (void)state;
    start_reload();
    workers.ready = 3;
    mk_lifecycle_worker_died_early(&lifecycle);
    expect(MK_STEP_ABANDON, MK_PHASE_SERVING);
}

static void lifecycle_reload_during_reload_follows_once(void **state)
{
    (void)state;
    hand_over();
    mk_lifecycle_request_reload(&lifecycle);
    mk_lifecycle_request_reload(&lifecycle);
    expect_nothing(MK_PHASE_HANDING_OVER);
    workers.accept_still = false;
    expect(MK_STEP_FINISH, MK_PHASE_SERVING);
    expect(MK_STEP_START_TRIAL, MK_PHASE_TRYING);
    mk_lifecycle_trial_done(&lifecycle, false);
    expect(MK_STEP_REJECT, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
}

/* No other event would wake the master later. */
static void lifecycle_reload_during_preparation_follows_failure(void **state)
{
    (void)state;
    prepare_reload();
    mk_lifecycle_request_reload(&lifecycle);
    expect_nothing(MK_PHASE_PREPARING);
    mk_lifecycle_plugins_prepared(&lifecycle, false);
    expect(MK_STEP_REJECT, MK_PHASE_SERVING);
    expect(MK_STEP_START_TRIAL, MK_PHASE_TRYING);
}

static void lifecycle_slow_reload_yields_to_next_in_each_phase(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(reloading); i++) {
        setup();
        reloading[i]();
        enum mk_lifecycle_phase phase = lifecycle.phase.current;
        mk_lifecycle_request_reload(&lifecycle);
        expect_nothing(phase);
        mk_lifecycle_mark_reload_slow(&lifecycle);
        expect(MK_STEP_GIVE_UP_RELOAD, MK_PHASE_SERVING);
        expect(MK_STEP_START_TRIAL, MK_PHASE_TRYING);
        assert_false(lifecycle.slow || lifecycle.again); /* the next reload has its own time limit */
        expect_nothing(MK_PHASE_TRYING);
    }
}

static void let_pass(unsigned periods, enum mk_lifecycle_phase phase)
{
    while (periods--) {
        mk_lifecycle_mark_reload_slow(&lifecycle);
        expect_nothing(phase);
    }
}

/* Requests arrive before each reload has finished: a reload that only takes long finishes in the end. */
static void lifecycle_each_replaced_reload_doubles_the_time_of_the_next(void **state)
{
    (void)state;
    try_reload();
    for (unsigned i = 0; i < 8; i++) {
        unsigned periods = 1u << (i < 5 ? i : 5);
        mk_lifecycle_request_reload(&lifecycle);
        let_pass(periods - 1, MK_PHASE_TRYING);
        mk_lifecycle_mark_reload_slow(&lifecycle);
        expect(MK_STEP_GIVE_UP_RELOAD, MK_PHASE_SERVING);
        assert_true(lifecycle.again);
        expect(MK_STEP_START_TRIAL, MK_PHASE_TRYING);
    }
}

static void fail_trial(void)
{
    mk_lifecycle_trial_done(&lifecycle, false);
    expect(MK_STEP_REJECT, MK_PHASE_SERVING);
}

static void succeed(void)
{
    mk_lifecycle_trial_done(&lifecycle, true);
    expect(MK_STEP_LOAD, MK_PHASE_TRYING);
    mk_lifecycle_config_loaded(&lifecycle, true);
    expect_nothing(MK_PHASE_PREPARING);
    mk_lifecycle_plugins_prepared(&lifecycle, true);
    expect(MK_STEP_START_NEW, MK_PHASE_RELOADING);
    workers.ready = workers.there = workers.wanted;
    expect(MK_STEP_HAND_OVER, MK_PHASE_HANDING_OVER);
    expect(MK_STEP_FINISH, MK_PHASE_SERVING);
}

static void lifecycle_reload_that_ends_resets_the_time_of_the_next(void **state)
{
    (void)state;
    static void (*const ends[])(void) = {fail_trial, succeed};
    for (size_t i = 0; i < MK_LEN(ends); i++) {
        setup();
        try_reload();
        mk_lifecycle_request_reload(&lifecycle);
        mk_lifecycle_mark_reload_slow(&lifecycle);
        expect(MK_STEP_GIVE_UP_RELOAD, MK_PHASE_SERVING);
        expect(MK_STEP_START_TRIAL, MK_PHASE_TRYING);
        ends[i]();
        mk_lifecycle_request_reload(&lifecycle);
        expect(MK_STEP_START_TRIAL, MK_PHASE_TRYING);
        mk_lifecycle_request_reload(&lifecycle);
        mk_lifecycle_mark_reload_slow(&lifecycle);
        expect(MK_STEP_GIVE_UP_RELOAD, MK_PHASE_SERVING);
    }
}

static void lifecycle_slow_reload_without_next_continues(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(reloading); i++) {
        setup();
        reloading[i]();
        enum mk_lifecycle_phase phase = lifecycle.phase.current;
        mk_lifecycle_mark_reload_slow(&lifecycle);
        expect_nothing(phase);
        mk_lifecycle_request_reload(&lifecycle);
        expect(MK_STEP_GIVE_UP_RELOAD, MK_PHASE_SERVING);
    }
}

static void lifecycle_slow_reload_is_given_up_after_death(void **state)
{
    (void)state;
    start_reload();
    mk_lifecycle_mark_reload_slow(&lifecycle);
    workers.old_there = 1;
    expect(MK_STEP_GIVE_UP_RELOAD, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
}

/* No worker dies later, so only the timer can trigger the step. */
static void lifecycle_reload_slow_after_death_is_given_up(void **state)
{
    (void)state;
    start_reload();
    workers.old_there = 1;
    expect_nothing(MK_PHASE_RELOADING);
    mk_lifecycle_mark_reload_slow(&lifecycle);
    expect(MK_STEP_GIVE_UP_RELOAD, MK_PHASE_SERVING);
}

/* The master replaces the worker in the meantime. */
static void lifecycle_slow_trial_continues_after_death(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        setup();
        reloading[i]();
        enum mk_lifecycle_phase phase = lifecycle.phase.current;
        mk_lifecycle_mark_reload_slow(&lifecycle);
        workers.old_there = 1;
        expect_nothing(phase);
    }
}

/* An unexpected result may belong to an earlier attempt. */
static void lifecycle_unexpected_results_are_ignored(void **state)
{
    (void)state;
    serve();
    for (int ok = 0; ok < 2; ok++) {
        mk_lifecycle_trial_done(&lifecycle, ok);
        mk_lifecycle_config_loaded(&lifecycle, ok);
        mk_lifecycle_plugins_prepared(&lifecycle, ok);
        mk_lifecycle_workers_started(&lifecycle, ok);
        expect_nothing(MK_PHASE_SERVING);
    }
}

/* ---- Shutdown ---- */

static void lifecycle_shutdown_waits_for_last_worker(void **state)
{
    (void)state;
    serve();
    const struct mk_lifecycle_shutdown ending = mk_lifecycle_begin_shutdown(&lifecycle, false);
    assert_true(ending.is_first);
    assert_false(ending.has_limit || ending.kills_starting);
    expect_nothing(MK_PHASE_ENDING);
    workers.all = 1;
    expect_nothing(MK_PHASE_ENDING);
    workers.all = 0;
    expect(MK_STEP_STOP, MK_PHASE_ENDING);
}

static void lifecycle_fast_shutdown_follows_graceful_one(void **state)
{
    (void)state;
    serve();
    assert_true(mk_lifecycle_begin_shutdown(&lifecycle, false).is_first);
    const struct mk_lifecycle_shutdown second = mk_lifecycle_begin_shutdown(&lifecycle, true);
    assert_false(second.is_first); /* the second command does not change the exit code */
    assert_true(second.has_limit);
}

static void lifecycle_shutdown_drops_due_step(void **state)
{
    (void)state;
    try_reload();
    mk_lifecycle_trial_done(&lifecycle, true);
    (void)mk_lifecycle_begin_shutdown(&lifecycle, false);
    expect_nothing(MK_PHASE_ENDING);
}

static void lifecycle_shutdown_starts_nothing(void **state)
{
    (void)state;
    start_reload();
    (void)mk_lifecycle_begin_shutdown(&lifecycle, false);
    mk_lifecycle_request_reload(&lifecycle);
    mk_lifecycle_mark_reload_slow(&lifecycle);
    mk_lifecycle_old_workers_late(&lifecycle);
    mk_lifecycle_worker_died_early(&lifecycle);
    mk_lifecycle_trial_done(&lifecycle, true);
    mk_lifecycle_config_loaded(&lifecycle, true);
    mk_lifecycle_plugins_prepared(&lifecycle, true);
    workers.ready = workers.wanted;
    workers.old_there = 0;
    expect_nothing(MK_PHASE_ENDING);
}

/* Workers that do not serve yet have nothing to finish. */
static void lifecycle_shutdown_kills_starting_workers(void **state)
{
    (void)state;
    start_reload();
    assert_true(mk_lifecycle_begin_shutdown(&lifecycle, true).kills_starting);
    setup();
    start_reload();
    assert_false(mk_lifecycle_begin_shutdown(&lifecycle, false).kills_starting);
    setup();
    start_reload();
    mk_lifecycle_mark_reload_slow(&lifecycle);
    assert_true(mk_lifecycle_begin_shutdown(&lifecycle, false).kills_starting);
    setup();
    serve();
    assert_false(mk_lifecycle_begin_shutdown(&lifecycle, true).kills_starting);
}

/* ---- Replacing workers ---- */

static void lifecycle_restart_backs_off_up_to_limit(void **state)
{
    static const uint32_t expected[] = {0, 100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000, 10000};
    unsigned deaths = 0;
    (void)state;
    for (size_t i = 0; i < MK_LEN(expected); i++)
        assert_int_equal(mk_lifecycle_restart_pause(&deaths, 0), expected[i]);
    for (int i = 0; i < 100; i++)
        assert_int_equal(mk_lifecycle_restart_pause(&deaths, 0), 10000);
}

static void lifecycle_restart_after_long_life_is_immediate(void **state)
{
    unsigned deaths = 0;
    (void)state;
    for (int i = 0; i < 5; i++)
        (void)mk_lifecycle_restart_pause(&deaths, 999);
    assert_int_equal(mk_lifecycle_restart_pause(&deaths, 999), 1600);
    assert_int_equal(mk_lifecycle_restart_pause(&deaths, 1000), 0);
    assert_int_equal(deaths, 0);
    assert_int_equal(mk_lifecycle_restart_pause(&deaths, 0), 0);
    assert_int_equal(mk_lifecycle_restart_pause(&deaths, 0), 100);
}

static void lifecycle_replacement_interval_does_not_grow(void **state)
{
    enum { REPLACEMENTS = 8, INTERVAL_MS = 30000 };
    struct mk_lifecycle_replacements r = {0};
    uint64_t now = 5;
    (void)state;
    assert_int_equal(mk_lifecycle_replacement_pause(&r, now), 0);
    for (int i = 0; i < REPLACEMENTS; i++) {
        assert_int_equal(mk_lifecycle_replacement_pause(&r, now), INTERVAL_MS);
        assert_int_equal(mk_lifecycle_replacement_pause(&r, now + INTERVAL_MS - 1), 1);
        now += INTERVAL_MS;
        assert_int_equal(mk_lifecycle_replacement_pause(&r, now), 0);
    }
}

/* ---- State machine ---- */

static void lifecycle_state_machine_has_these_transitions(void **state)
{
    (void)state;
    expect_state_machine(&mk_lifecycle_machine, "prepare first: starting, ending\n"
                                                "starting: serving, ending\n"
                                                "serving: trying, ending\n"
                                                "trying: serving, preparing, ending\n"
                                                "preparing: serving, reloading, ending\n"
                                                "reloading: serving, handing over, ending\n"
                                                "handing over: serving, ending\n"
                                                "ending\n");
}

enum event {
    RELOAD, /* an administrator requests a reload */
    TRIED,  /* by another process */
    TRIED_IN_VAIN,
    LOADED,
    NOT_LOADED,
    PREPARED,
    NOT_PREPARED,
    NOT_STARTED, /* no worker could start, or a worker of the newest set died early */
    SLOW,
    SLOW_AND_RELOAD,
    SLOW_AND_LOSS, /* the reload is slow, and a serving worker dies */
    LOSS,
    LATE,
    READY,           /* all workers of the newest set serve */
    READY_AND_QUIET, /* and the old ones no longer accept connections */
    END,
    EVENTS
};

static void happen(enum event e)
{
    switch (e) {
    case RELOAD:
        mk_lifecycle_request_reload(&lifecycle);
        break;
    case TRIED:
    case TRIED_IN_VAIN:
        mk_lifecycle_trial_done(&lifecycle, e == TRIED);
        break;
    case LOADED:
    case NOT_LOADED:
        mk_lifecycle_config_loaded(&lifecycle, e == LOADED);
        break;
    case PREPARED:
    case NOT_PREPARED:
        mk_lifecycle_plugins_prepared(&lifecycle, e == PREPARED);
        break;
    case NOT_STARTED:
        mk_lifecycle_workers_started(&lifecycle, false);
        break;
    case SLOW_AND_RELOAD:
        mk_lifecycle_request_reload(&lifecycle);
        mk_lifecycle_mark_reload_slow(&lifecycle);
        break;
    case SLOW:
    case SLOW_AND_LOSS:
        mk_lifecycle_mark_reload_slow(&lifecycle);
        if (e == SLOW)
            break;
        /* fallthrough */
    case LOSS:
        workers.old_there = 1;
        break;
    case LATE:
        mk_lifecycle_old_workers_late(&lifecycle);
        break;
    case READY_AND_QUIET:
        workers.accept_still = false;
        /* fallthrough */
    case READY:
        workers.ready = workers.there = workers.wanted;
        break;
    case END:
        (void)mk_lifecycle_begin_shutdown(&lifecycle, false);
        workers.all = 0;
        break;
    case EVENTS:
        break;
    }
}

/* Without a transition, the master is in its first phase. */
static void wait_for_plugins(void)
{
}

static void start_first(void)
{
    mk_lifecycle_plugins_prepared(&lifecycle, true);
    expect(MK_STEP_START_FIRST, MK_PHASE_STARTING);
    workers =
        (struct mk_lifecycle_workers){.wanted = 2, .there = 2, .old_wanted = 2, .old_there = 2, .all = 2};
}

static void end(void)
{
    serve();
    (void)mk_lifecycle_begin_shutdown(&lifecycle, false);
}

static void (*const reach[MK_PHASES])(void) = {
    [MK_PHASE_PREPARING_FIRST] = wait_for_plugins,
    [MK_PHASE_STARTING] = start_first,
    [MK_PHASE_SERVING] = serve,
    [MK_PHASE_TRYING] = try_reload,
    [MK_PHASE_PREPARING] = prepare_reload,
    [MK_PHASE_RELOADING] = start_reload,
    [MK_PHASE_HANDING_OVER] = hand_over,
    [MK_PHASE_ENDING] = end,
};

/* The effects of all events; in every other phase, an event has no effect. */
static const struct {
    enum event event;
    enum mk_lifecycle_phase in;
    enum mk_lifecycle_step step;
    enum mk_lifecycle_phase then;
} rules[] = {
    {RELOAD, MK_PHASE_SERVING, MK_STEP_START_TRIAL, MK_PHASE_TRYING},
    {TRIED, MK_PHASE_TRYING, MK_STEP_LOAD, MK_PHASE_TRYING},
    {TRIED_IN_VAIN, MK_PHASE_TRYING, MK_STEP_REJECT, MK_PHASE_SERVING},
    {LOADED, MK_PHASE_TRYING, MK_STEP_WAIT, MK_PHASE_PREPARING},
    {NOT_LOADED, MK_PHASE_TRYING, MK_STEP_REJECT, MK_PHASE_SERVING},
    {PREPARED, MK_PHASE_PREPARING_FIRST, MK_STEP_START_FIRST, MK_PHASE_STARTING},
    {NOT_PREPARED, MK_PHASE_PREPARING_FIRST, MK_STEP_FAIL, MK_PHASE_STARTING},
    {PREPARED, MK_PHASE_PREPARING, MK_STEP_START_NEW, MK_PHASE_RELOADING},
    {NOT_PREPARED, MK_PHASE_PREPARING, MK_STEP_REJECT, MK_PHASE_SERVING},
    {NOT_STARTED, MK_PHASE_STARTING, MK_STEP_FAIL, MK_PHASE_STARTING},
    {NOT_STARTED, MK_PHASE_RELOADING, MK_STEP_ABANDON, MK_PHASE_SERVING},
    {SLOW_AND_RELOAD, MK_PHASE_SERVING, MK_STEP_START_TRIAL, MK_PHASE_TRYING},
    {SLOW_AND_RELOAD, MK_PHASE_TRYING, MK_STEP_GIVE_UP_RELOAD, MK_PHASE_SERVING},
    {SLOW_AND_RELOAD, MK_PHASE_PREPARING, MK_STEP_GIVE_UP_RELOAD, MK_PHASE_SERVING},
    {SLOW_AND_RELOAD, MK_PHASE_RELOADING, MK_STEP_GIVE_UP_RELOAD, MK_PHASE_SERVING},
    {SLOW_AND_LOSS, MK_PHASE_RELOADING, MK_STEP_GIVE_UP_RELOAD, MK_PHASE_SERVING},
    {LATE, MK_PHASE_HANDING_OVER, MK_STEP_FINISH, MK_PHASE_SERVING},
    {READY, MK_PHASE_STARTING, MK_STEP_SERVE, MK_PHASE_SERVING},
    {READY, MK_PHASE_RELOADING, MK_STEP_HAND_OVER, MK_PHASE_HANDING_OVER},
    {READY_AND_QUIET, MK_PHASE_STARTING, MK_STEP_SERVE, MK_PHASE_SERVING},
    {READY_AND_QUIET, MK_PHASE_RELOADING, MK_STEP_HAND_OVER, MK_PHASE_HANDING_OVER},
    {READY_AND_QUIET, MK_PHASE_HANDING_OVER, MK_STEP_FINISH, MK_PHASE_SERVING},
};

static void expect_rule(enum event event, enum mk_lifecycle_phase in)
{
    for (size_t i = 0; i < MK_LEN(rules); i++)
        if (rules[i].event == event && rules[i].in == in) {
            expect(rules[i].step, rules[i].then);
            return;
        }
    if (event == END)
        expect(MK_STEP_STOP, MK_PHASE_ENDING);
    else
        expect(MK_STEP_WAIT, in);
}

static void lifecycle_event_has_one_effect_in_each_phase(void **state)
{
    (void)state;
    for (unsigned phase = 0; phase < MK_PHASES; phase++)
        for (unsigned event = 0; event < EVENTS; event++) {
            setup();
            reach[phase]();
            assert_int_equal(lifecycle.phase.current, phase);
            happen((enum event)event);
            expect_rule((enum event)event, (enum mk_lifecycle_phase)phase);
        }
}

static uint32_t seed;

static bool flip(void)
{
    seed = seed * 1664525 + 1013904223;
    return seed >> 31;
}

static void do_step(enum mk_lifecycle_step step, bool ok)
{
    if (step == MK_STEP_LOAD)
        happen(ok ? LOADED : NOT_LOADED);
    else if (step == MK_STEP_START_FIRST || step == MK_STEP_START_NEW)
        workers =
            (struct mk_lifecycle_workers){.wanted = 2,
                                          .there = 2,
                                          .old_wanted = 2,
                                          .old_there = step == MK_STEP_START_NEW ? workers.old_there : 2,
                                          .all = 4,
                                          .accept_still = true};
    else if (step == MK_STEP_FAIL)
        happen(END);
    if (!ok && step == MK_STEP_START_NEW)
        happen(NOT_STARTED);
}

/* Advances the state machine as the master does after each event. */
static enum mk_lifecycle_step advance(bool can_fail)
{
    enum mk_lifecycle_step step = MK_STEP_START_TRIAL;
    for (int i = 0; step != MK_STEP_WAIT && step != MK_STEP_STOP; i++) {
        assert_true(i < 10);
        step = mk_lifecycle_next_step(&lifecycle, &workers);
        do_step(step, !can_fail || flip());
    }
    return step;
}

/* From here on, everything succeeds: the master must serve, or have ended. */
static void expect_rest(void)
{
    static const enum event good[] = {TRIED, PREPARED, READY_AND_QUIET};
    enum mk_lifecycle_step step = MK_STEP_WAIT;
    for (size_t i = 0; i < 4 * MK_LEN(good) && step != MK_STEP_STOP; i++) {
        happen(good[i % MK_LEN(good)]);
        step = advance(false);
    }
    if (step != MK_STEP_STOP && (lifecycle.phase.current != MK_PHASE_SERVING || lifecycle.again))
        fail_msg("it remains in state %s", mk_lifecycle_machine.states->names[lifecycle.phase.current]);
}

/* A trial, a lost worker and a reload request arrive at once, in any order: the state machine checks each
 * transition. */
static void lifecycle_settles_after_random_events(void **state)
{
    (void)state;
    static const enum event any[] = {RELOAD,       TRIED,       TRIED_IN_VAIN, PREPARED,
                                     NOT_PREPARED, NOT_STARTED, SLOW,          SLOW_AND_LOSS,
                                     LOSS,         LATE,        READY,         READY_AND_QUIET};
    unsigned seen = 0;
    seed = 20261128;
    for (int round = 0; round < 20000; round++) {
        setup();
        for (int i = 0; i < 20; i++) {
            (void)flip();
            happen(any[(seed >> 16 & 0x7fff) % MK_LEN(any)]);
            (void)advance(true);
            seen |= MK_STATE_TO(lifecycle.phase.current);
        }
        if (round % 8 == 0)
            happen(END);
        expect_rest();
    }
    assert_int_equal(seen, (1u << MK_PHASES) - 1);
}

static void move_to_handing_over(void *ctx)
{
    mk_state_move(&lifecycle.phase, &mk_lifecycle_machine, ctx, MK_PHASE_HANDING_OVER);
}

static void lifecycle_handover_needs_no_due_step(void **state)
{
    (void)state;
    start_reload();
    lifecycle.due = MK_STEP_ABANDON;
    assert_aborts(move_to_handing_over, &lifecycle, "master in state \"handing over\": this step may be due");
    lifecycle.due = MK_STEP_WAIT;
    lifecycle.slow = true;
    assert_aborts(move_to_handing_over, &lifecycle, "master in state \"handing over\": a reload is slow");
}

static void lifecycle_slow_reload_stays_slow_in_later_phases(void **state)
{
    (void)state;
    try_reload();
    mk_lifecycle_mark_reload_slow(&lifecycle);
    mk_lifecycle_trial_done(&lifecycle, true);
    expect(MK_STEP_LOAD, MK_PHASE_TRYING);
    mk_lifecycle_config_loaded(&lifecycle, true);
    expect_nothing(MK_PHASE_PREPARING);
    mk_lifecycle_plugins_prepared(&lifecycle, true);
    expect(MK_STEP_START_NEW, MK_PHASE_RELOADING);
    workers.old_there = 1;
    expect(MK_STEP_GIVE_UP_RELOAD, MK_PHASE_SERVING);
}

/* If a finished reload counted as slow, the next shutdown would kill workers that have just replaced others. */
static void lifecycle_finished_reload_is_not_slow(void **state)
{
    (void)state;
    start_reload();
    mk_lifecycle_mark_reload_slow(&lifecycle);
    workers.ready = 3;
    expect(MK_STEP_HAND_OVER, MK_PHASE_HANDING_OVER);
    expect(MK_STEP_FINISH, MK_PHASE_SERVING);
    assert_false(mk_lifecycle_begin_shutdown(&lifecycle, false).kills_starting);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(lifecycle_start_waits_until_all_workers_serve, setup),
        fixture_test(lifecycle_start_with_failed_plugin_starts_no_workers, setup),
        fixture_test(lifecycle_start_fails_if_fork_fails, setup),
        fixture_test(lifecycle_start_fails_after_early_death, setup),
        fixture_test(lifecycle_reload_during_start_follows_start, setup),
        fixture_test(lifecycle_early_death_while_serving_is_ignored, setup),
        fixture_test(lifecycle_upgrade_needs_serving, setup),
        fixture_test(lifecycle_reload_hands_over_when_all_new_workers_serve, setup),
        fixture_test(lifecycle_reload_without_old_workers_finishes_at_once, setup),
        fixture_test(lifecycle_handover_times_out, setup),
        fixture_test(lifecycle_handover_ignores_early_death, setup),
        fixture_test(lifecycle_failed_reload_keeps_old_configuration, setup),
        fixture_test(lifecycle_reload_is_abandoned_if_fork_fails, setup),
        fixture_test(lifecycle_reload_is_abandoned_after_early_death, setup),
        fixture_test(lifecycle_reload_during_reload_follows_once, setup),
        fixture_test(lifecycle_reload_during_preparation_follows_failure, setup),
        fixture_test(lifecycle_slow_reload_yields_to_next_in_each_phase, setup),
        fixture_test(lifecycle_each_replaced_reload_doubles_the_time_of_the_next, setup),
        fixture_test(lifecycle_reload_that_ends_resets_the_time_of_the_next, setup),
        fixture_test(lifecycle_slow_reload_without_next_continues, setup),
        fixture_test(lifecycle_slow_reload_is_given_up_after_death, setup),
        fixture_test(lifecycle_reload_slow_after_death_is_given_up, setup),
        fixture_test(lifecycle_slow_trial_continues_after_death, setup),
        fixture_test(lifecycle_unexpected_results_are_ignored, setup),
        fixture_test(lifecycle_shutdown_waits_for_last_worker, setup),
        fixture_test(lifecycle_fast_shutdown_follows_graceful_one, setup),
        fixture_test(lifecycle_shutdown_drops_due_step, setup),
        fixture_test(lifecycle_shutdown_starts_nothing, setup),
        fixture_test(lifecycle_shutdown_kills_starting_workers, setup),
        fixture_test(lifecycle_restart_backs_off_up_to_limit, setup),
        fixture_test(lifecycle_restart_after_long_life_is_immediate, setup),
        fixture_test(lifecycle_replacement_interval_does_not_grow, setup),
        fixture_test(lifecycle_state_machine_has_these_transitions, setup),
        fixture_test(lifecycle_event_has_one_effect_in_each_phase, setup),
        fixture_test(lifecycle_settles_after_random_events, setup),
        fixture_test(lifecycle_handover_needs_no_due_step, setup),
        fixture_test(lifecycle_slow_reload_stays_slow_in_later_phases, setup),
        fixture_test(lifecycle_finished_reload_is_not_slow, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
