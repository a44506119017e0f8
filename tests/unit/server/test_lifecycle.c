/* SPDX-License-Identifier: Apache-2.0 */
#include "server/lifecycle.h"

#include "unit/death.h"
#include "unit/machine.h"

static struct mk_lifecycle life;
static struct mk_lifecycle_workers workers;

static int begin(void **state)
{
    (void)state;
    life = (struct mk_lifecycle){0};
    mk_sm_init(&life.phase, &mk_lifecycle_machine, MK_PHASE_PREPARING_FIRST);
    workers = (struct mk_lifecycle_workers){.old_wanted = 2};
    return 0;
}

static void expect(enum mk_lifecycle_step step, enum mk_lifecycle_phase phase)
{
    assert_int_equal(mk_lifecycle_next_step(&life, &workers), step);
    assert_int_equal(life.phase.is, phase);
}

/* Nothing follows, however often the master asks. */
static void expect_nothing(enum mk_lifecycle_phase phase)
{
    expect(MK_STEP_WAIT, phase);
    expect(MK_STEP_WAIT, phase);
}

/* Two workers of the only set. */
static void serve(void)
{
    mk_lifecycle_plugins_prepared(&life, true);
    expect(MK_STEP_START_FIRST, MK_PHASE_STARTING);
    workers =
        (struct mk_lifecycle_workers){.wanted = 2, .there = 2, .old_wanted = 2, .old_there = 2, .all = 2};
    mk_lifecycle_workers_started(&life, true);
    expect_nothing(MK_PHASE_STARTING);
    workers.ready = 2;
    expect(MK_STEP_SERVE, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
}

static void try_reload(void)
{
    serve();
    mk_lifecycle_request_reload(&life);
    expect(MK_STEP_START_TRIAL, MK_PHASE_TRYING);
    expect_nothing(MK_PHASE_TRYING);
}

static void prepare_reload(void)
{
    try_reload();
    mk_lifecycle_trial_done(&life, true);
    expect(MK_STEP_LOAD, MK_PHASE_TRYING);
    mk_lifecycle_config_loaded(&life, true);
    expect_nothing(MK_PHASE_PREPARING);
}

/* Three new workers beside the two old ones. */
static void start_reload(void)
{
    prepare_reload();
    mk_lifecycle_plugins_prepared(&life, true);
    expect(MK_STEP_START_NEW, MK_PHASE_RELOADING);
    workers =
        (struct mk_lifecycle_workers){.wanted = 3, .there = 3, .old_wanted = 2, .old_there = 2, .all = 5};
    mk_lifecycle_workers_started(&life, true);
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

static void start_waits_until_each_worker_serves(void **state)
{
    (void)state;
    expect_nothing(MK_PHASE_PREPARING_FIRST);
    mk_lifecycle_plugins_prepared(&life, true);
    expect(MK_STEP_START_FIRST, MK_PHASE_STARTING);
    workers = (struct mk_lifecycle_workers){.wanted = 2, .there = 2, .ready = 1, .all = 2};
    expect_nothing(MK_PHASE_STARTING);
    workers.ready = 2;
    expect(MK_STEP_SERVE, MK_PHASE_SERVING);
}

static void start_with_unprepared_plugin_fails_without_workers(void **state)
{
    (void)state;
    mk_lifecycle_plugins_prepared(&life, false);
    expect(MK_STEP_FAIL, MK_PHASE_STARTING);
    assert_true(mk_lifecycle_begin_shutdown(&life, true).is_first);
    expect(MK_STEP_STOP, MK_PHASE_ENDING);
}

static void start_whose_workers_cannot_fork_fails(void **state)
{
    (void)state;
    mk_lifecycle_plugins_prepared(&life, true);
    expect(MK_STEP_START_FIRST, MK_PHASE_STARTING);
    mk_lifecycle_workers_started(&life, false);
    expect(MK_STEP_FAIL, MK_PHASE_STARTING);
}

static void start_with_early_death_fails_even_if_others_serve(void **state)
{
    (void)state;
    mk_lifecycle_plugins_prepared(&life, true);
    expect(MK_STEP_START_FIRST, MK_PHASE_STARTING);
    workers = (struct mk_lifecycle_workers){.wanted = 2, .there = 2, .ready = 2, .all = 2};
    mk_lifecycle_worker_died_early(&life);
    expect(MK_STEP_FAIL, MK_PHASE_STARTING);
}

static void reload_during_start_follows_when_it_serves(void **state)
{
    (void)state;
    mk_lifecycle_request_reload(&life);
    expect_nothing(MK_PHASE_PREPARING_FIRST);
    mk_lifecycle_plugins_prepared(&life, true);
    expect(MK_STEP_START_FIRST, MK_PHASE_STARTING);
    workers = (struct mk_lifecycle_workers){.wanted = 1, .there = 1, .ready = 1, .all = 1};
    expect(MK_STEP_SERVE, MK_PHASE_SERVING);
    expect(MK_STEP_START_TRIAL, MK_PHASE_TRYING);
}

/* ---- Serving ---- */

static void early_death_while_serving_changes_nothing(void **state)
{
    (void)state;
    serve();
    workers.there = workers.ready = workers.old_there = 1;
    mk_lifecycle_worker_died_early(&life);
    expect_nothing(MK_PHASE_SERVING);
}

static void upgrade_is_allowed_only_while_serving(void **state)
{
    (void)state;
    for (unsigned phase = 0; phase < MK_PHASES; phase++) {
        mk_sm_init(&life.phase, &mk_lifecycle_machine, phase);
        assert_int_equal(mk_lifecycle_may_upgrade(&life), phase == MK_PHASE_SERVING);
    }
}

/* ---- Reloading ---- */

static void reload_hands_over_when_all_new_workers_serve(void **state)
{
    (void)state;
    start_reload();
    workers.ready = 2;
    expect_nothing(MK_PHASE_RELOADING);
    workers.ready = 3;
    workers.there = 4; /* a worker drains, and its replacement starts */
    expect_nothing(MK_PHASE_RELOADING);
    workers.there = 3;
    workers.accept_still = true;
    expect(MK_STEP_HAND_OVER, MK_PHASE_HANDING_OVER);
    expect_nothing(MK_PHASE_HANDING_OVER);
    workers.accept_still = false;
    expect(MK_STEP_FINISH, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
}

static void reload_without_old_workers_finishes_at_once(void **state)
{
    (void)state;
    start_reload();
    workers.ready = 3;
    expect(MK_STEP_HAND_OVER, MK_PHASE_HANDING_OVER);
    expect(MK_STEP_FINISH, MK_PHASE_SERVING);
}

static void hand_over_ends_without_the_answer_of_old_workers(void **state)
{
    (void)state;
    hand_over();
    mk_lifecycle_old_workers_late(&life);
    expect(MK_STEP_FINISH, MK_PHASE_SERVING);
    mk_lifecycle_old_workers_late(&life); /* while serving: of no hand-over */
    workers.wanted = 2;
    workers.there = workers.ready = 2;
    mk_lifecycle_request_reload(&life);
    expect(MK_STEP_START_TRIAL, MK_PHASE_TRYING);
    assert_false(life.late);
}

static void hand_over_ignores_an_early_death(void **state)
{
    (void)state;
    hand_over();
    mk_lifecycle_worker_died_early(&life);
    expect_nothing(MK_PHASE_HANDING_OVER);
}

static void reload_that_fails_keeps_the_old_configuration(void **state)
{
    (void)state;
    try_reload();
    mk_lifecycle_trial_done(&life, false);
    expect(MK_STEP_REJECT, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
    begin(NULL);
    try_reload();
    mk_lifecycle_trial_done(&life, true);
    expect(MK_STEP_LOAD, MK_PHASE_TRYING);
    mk_lifecycle_config_loaded(&life, false);
    expect(MK_STEP_REJECT, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
    begin(NULL);
    prepare_reload();
    mk_lifecycle_plugins_prepared(&life, false);
    expect(MK_STEP_REJECT, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
    begin(NULL);
    start_reload();
    mk_lifecycle_worker_died_early(&life);
    expect(MK_STEP_ABANDON, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
}

static void reload_whose_workers_cannot_fork_is_abandoned(void **state)
{
    (void)state;
    prepare_reload();
    mk_lifecycle_plugins_prepared(&life, true);
    expect(MK_STEP_START_NEW, MK_PHASE_RELOADING);
    mk_lifecycle_workers_started(&life, false);
    expect(MK_STEP_ABANDON, MK_PHASE_SERVING);
}

/* An early death counts although the others serve. */
static void reload_with_early_death_does_not_hand_over(void **state)
{
    (void)state;
    start_reload();
    workers.ready = 3;
    mk_lifecycle_worker_died_early(&life);
    expect(MK_STEP_ABANDON, MK_PHASE_SERVING);
}

static void reload_requested_during_a_reload_follows_it_once(void **state)
{
    (void)state;
    hand_over();
    mk_lifecycle_request_reload(&life);
    mk_lifecycle_request_reload(&life);
    expect_nothing(MK_PHASE_HANDING_OVER);
    workers.accept_still = false;
    expect(MK_STEP_FINISH, MK_PHASE_SERVING);
    expect(MK_STEP_START_TRIAL, MK_PHASE_TRYING);
    mk_lifecycle_trial_done(&life, false);
    expect(MK_STEP_REJECT, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
}

/* No other event wakes the master afterwards. */
static void reload_requested_while_plugins_prepare_follows_their_failure(void **state)
{
    (void)state;
    prepare_reload();
    mk_lifecycle_request_reload(&life);
    expect_nothing(MK_PHASE_PREPARING);
    mk_lifecycle_plugins_prepared(&life, false);
    expect(MK_STEP_REJECT, MK_PHASE_SERVING);
    expect(MK_STEP_START_TRIAL, MK_PHASE_TRYING);
}

static void slow_reload_gives_way_to_the_next_in_each_phase(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(reloading); i++) {
        begin(NULL);
        reloading[i]();
        enum mk_lifecycle_phase phase = life.phase.is;
        mk_lifecycle_request_reload(&life);
        expect_nothing(phase);
        mk_lifecycle_reload_is_slow(&life);
        expect(MK_STEP_GIVE_UP_RELOAD, MK_PHASE_SERVING);
        expect(MK_STEP_START_TRIAL, MK_PHASE_TRYING);
        assert_false(life.slow || life.again); /* the next one has its own time */
        expect_nothing(MK_PHASE_TRYING);
    }
}

static void slow_reload_without_a_next_goes_on(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(reloading); i++) {
        begin(NULL);
        reloading[i]();
        enum mk_lifecycle_phase phase = life.phase.is;
        mk_lifecycle_reload_is_slow(&life);
        expect_nothing(phase);
        mk_lifecycle_request_reload(&life);
        expect(MK_STEP_GIVE_UP_RELOAD, MK_PHASE_SERVING);
    }
}

static void slow_reload_gives_way_when_a_serving_worker_dies(void **state)
{
    (void)state;
    start_reload();
    mk_lifecycle_reload_is_slow(&life);
    workers.old_there = 1;
    expect(MK_STEP_GIVE_UP_RELOAD, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
}

/* No worker dies later, so that only the timer can tell. */
static void reload_that_becomes_slow_after_a_death_gives_way(void **state)
{
    (void)state;
    start_reload();
    workers.old_there = 1;
    expect_nothing(MK_PHASE_RELOADING);
    mk_lifecycle_reload_is_slow(&life);
    expect(MK_STEP_GIVE_UP_RELOAD, MK_PHASE_SERVING);
}

/* The master replaces it meanwhile. */
static void slow_trial_outlives_a_death(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        begin(NULL);
        reloading[i]();
        enum mk_lifecycle_phase phase = life.phase.is;
        mk_lifecycle_reload_is_slow(&life);
        workers.old_there = 1;
        expect_nothing(phase);
    }
}

/* Of an attempt that has given way, for example. */
static void results_that_nobody_waits_for_are_ignored(void **state)
{
    (void)state;
    serve();
    for (int ok = 0; ok < 2; ok++) {
        mk_lifecycle_trial_done(&life, ok);
        mk_lifecycle_config_loaded(&life, ok);
        mk_lifecycle_plugins_prepared(&life, ok);
        mk_lifecycle_workers_started(&life, ok);
        expect_nothing(MK_PHASE_SERVING);
    }
}

/* ---- Ending ---- */

static void end_waits_for_the_last_worker(void **state)
{
    (void)state;
    serve();
    const struct mk_lifecycle_shutdown ending = mk_lifecycle_begin_shutdown(&life, false);
    assert_true(ending.is_first);
    assert_false(ending.has_limit || ending.kills_starting);
    expect_nothing(MK_PHASE_ENDING);
    workers.all = 1;
    expect_nothing(MK_PHASE_ENDING);
    workers.all = 0;
    expect(MK_STEP_STOP, MK_PHASE_ENDING);
}

static void end_at_once_follows_a_slow_end(void **state)
{
    (void)state;
    serve();
    assert_true(mk_lifecycle_begin_shutdown(&life, false).is_first);
    const struct mk_lifecycle_shutdown second = mk_lifecycle_begin_shutdown(&life, true);
    assert_false(second.is_first); /* the exit code stays */
    assert_true(second.has_limit);
}

static void end_drops_the_step_that_was_due(void **state)
{
    (void)state;
    try_reload();
    mk_lifecycle_trial_done(&life, true);
    (void)mk_lifecycle_begin_shutdown(&life, false);
    expect_nothing(MK_PHASE_ENDING);
}

static void ending_begins_nothing(void **state)
{
    (void)state;
    start_reload();
    (void)mk_lifecycle_begin_shutdown(&life, false);
    mk_lifecycle_request_reload(&life);
    mk_lifecycle_reload_is_slow(&life);
    mk_lifecycle_old_workers_late(&life);
    mk_lifecycle_worker_died_early(&life);
    mk_lifecycle_trial_done(&life, true);
    mk_lifecycle_config_loaded(&life, true);
    mk_lifecycle_plugins_prepared(&life, true);
    workers.ready = workers.wanted;
    workers.old_there = 0;
    expect_nothing(MK_PHASE_ENDING);
}

/* Workers that do not serve yet have nothing to finish. */
static void end_kills_starting_workers_that_may_hang(void **state)
{
    (void)state;
    start_reload();
    assert_true(mk_lifecycle_begin_shutdown(&life, true).kills_starting);
    begin(NULL);
    start_reload();
    assert_false(mk_lifecycle_begin_shutdown(&life, false).kills_starting);
    begin(NULL);
    start_reload();
    mk_lifecycle_reload_is_slow(&life);
    assert_true(mk_lifecycle_begin_shutdown(&life, false).kills_starting);
    begin(NULL);
    serve();
    assert_false(mk_lifecycle_begin_shutdown(&life, true).kills_starting);
}

/* ---- Replacing workers ---- */

static void restart_pause_grows_with_early_deaths_up_to_a_limit(void **state)
{
    static const uint32_t expected[] = {0, 100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000, 10000};
    unsigned deaths = 0;
    (void)state;
    for (size_t i = 0; i < MK_LEN(expected); i++)
        assert_int_equal(mk_lifecycle_restart_pause(&deaths, 0), expected[i]);
    for (int i = 0; i < 100; i++)
        assert_int_equal(mk_lifecycle_restart_pause(&deaths, 0), 10000);
}

static void restart_after_a_long_life_has_no_pause(void **state)
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

/* ---- The table ---- */

static void master_reloads_and_ends_by_its_table(void **state)
{
    (void)state;
    machine_expect(&mk_lifecycle_machine, "prepare first: starting, ending\n"
                                          "starting: serving, ending\n"
                                          "serving: trying, ending\n"
                                          "trying: serving, preparing, ending\n"
                                          "preparing: serving, reloading, ending\n"
                                          "reloading: serving, handing over, ending\n"
                                          "handing over: serving, ending\n"
                                          "ending\n");
}

enum event {
    RELOAD, /* is requested */
    TRIED,  /* by another process */
    TRIED_IN_VAIN,
    LOADED,
    NOT_LOADED,
    PREPARED,
    NOT_PREPARED,
    NOT_STARTED, /* or a worker of the newest set has died early */
    SLOW,
    SLOW_AND_RELOAD,
    SLOW_AND_LOSS, /* the reload is slow, and a worker that serves dies */
    LOSS,
    LATE,
    READY,           /* all workers of the newest set serve */
    READY_AND_QUIET, /* and the old ones accept no more */
    END,
    EVENTS
};

static void happen(enum event e)
{
    switch (e) {
    case RELOAD:
        mk_lifecycle_request_reload(&life);
        break;
    case TRIED:
    case TRIED_IN_VAIN:
        mk_lifecycle_trial_done(&life, e == TRIED);
        break;
    case LOADED:
    case NOT_LOADED:
        mk_lifecycle_config_loaded(&life, e == LOADED);
        break;
    case PREPARED:
    case NOT_PREPARED:
        mk_lifecycle_plugins_prepared(&life, e == PREPARED);
        break;
    case NOT_STARTED:
        mk_lifecycle_workers_started(&life, false);
        break;
    case SLOW_AND_RELOAD:
        mk_lifecycle_request_reload(&life);
        mk_lifecycle_reload_is_slow(&life);
        break;
    case SLOW:
    case SLOW_AND_LOSS:
        mk_lifecycle_reload_is_slow(&life);
        if (e == SLOW)
            break;
        /* fallthrough */
    case LOSS:
        workers.old_there = 1;
        break;
    case LATE:
        mk_lifecycle_old_workers_late(&life);
        break;
    case READY_AND_QUIET:
        workers.accept_still = false;
        /* fallthrough */
    case READY:
        workers.ready = workers.there = workers.wanted;
        break;
    case END:
        (void)mk_lifecycle_begin_shutdown(&life, false);
        workers.all = 0;
        break;
    case EVENTS:
        break;
    }
}

/* Without a move, the master is in its first phase. */
static void wait_for_plugins(void)
{
}

static void start_first(void)
{
    mk_lifecycle_plugins_prepared(&life, true);
    expect(MK_STEP_START_FIRST, MK_PHASE_STARTING);
    workers =
        (struct mk_lifecycle_workers){.wanted = 2, .there = 2, .old_wanted = 2, .old_there = 2, .all = 2};
}

static void end(void)
{
    serve();
    (void)mk_lifecycle_begin_shutdown(&life, false);
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

/* All that an event causes: in every other phase, nothing. */
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

static void each_event_has_one_effect_in_each_phase(void **state)
{
    for (unsigned phase = 0; phase < MK_PHASES; phase++)
        for (unsigned event = 0; event < EVENTS; event++) {
            begin(state);
            reach[phase]();
            assert_int_equal(life.phase.is, phase);
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

/* As the master does after each event. */
static enum mk_lifecycle_step advance(bool can_fail)
{
    enum mk_lifecycle_step step = MK_STEP_START_TRIAL;
    for (int i = 0; step != MK_STEP_WAIT && step != MK_STEP_STOP; i++) {
        assert_true(i < 10);
        step = mk_lifecycle_next_step(&life, &workers);
        do_step(step, !can_fail || flip());
    }
    return step;
}

/* All goes well from now on: the master serves, or has ended. */
static void expect_rest(void)
{
    static const enum event good[] = {TRIED, PREPARED, READY_AND_QUIET};
    enum mk_lifecycle_step step = MK_STEP_WAIT;
    for (size_t i = 0; i < 4 * MK_LEN(good) && step != MK_STEP_STOP; i++) {
        happen(good[i % MK_LEN(good)]);
        step = advance(false);
    }
    if (step != MK_STEP_STOP && (life.phase.is != MK_PHASE_SERVING || life.again))
        fail_msg("it stays in %s", mk_lifecycle_machine.states->names[life.phase.is]);
}

/* With a trial, a lost worker and a request to reload at once, in any order: the machine checks each move. */
static void master_comes_to_rest_after_any_events(void **state)
{
    static const enum event any[] = {RELOAD,       TRIED,       TRIED_IN_VAIN, PREPARED,
                                     NOT_PREPARED, NOT_STARTED, SLOW,          SLOW_AND_LOSS,
                                     LOSS,         LATE,        READY,         READY_AND_QUIET};
    unsigned seen = 0;
    seed = 20261128;
    for (int round = 0; round < 20000; round++) {
        begin(state);
        for (int i = 0; i < 20; i++) {
            (void)flip();
            happen(any[(seed >> 16 & 0x7fff) % MK_LEN(any)]);
            (void)advance(true);
            seen |= MK_SM_TO(life.phase.is);
        }
        if (round % 8 == 0)
            happen(END);
        expect_rest();
    }
    assert_int_equal(seen, (1u << MK_PHASES) - 1);
}

static void move_to_handing_over(void *ctx)
{
    mk_sm_move(&life.phase, &mk_lifecycle_machine, ctx, MK_PHASE_HANDING_OVER);
}

static void master_hands_over_nothing_while_a_step_is_due(void **state)
{
    (void)state;
    start_reload();
    life.due = MK_STEP_ABANDON;
    assert_bug(move_to_handing_over, &life, "master, handing over: this step may be due");
    life.due = MK_STEP_WAIT;
    life.slow = true;
    assert_bug(move_to_handing_over, &life, "master, handing over: a reload is slow");
}

static void reload_stays_slow_through_its_phases(void **state)
{
    (void)state;
    try_reload();
    mk_lifecycle_reload_is_slow(&life);
    mk_lifecycle_trial_done(&life, true);
    expect(MK_STEP_LOAD, MK_PHASE_TRYING);
    mk_lifecycle_config_loaded(&life, true);
    expect_nothing(MK_PHASE_PREPARING);
    mk_lifecycle_plugins_prepared(&life, true);
    expect(MK_STEP_START_NEW, MK_PHASE_RELOADING);
    workers.old_there = 1;
    expect(MK_STEP_GIVE_UP_RELOAD, MK_PHASE_SERVING);
}

/* Else the next order to end would kill workers that have only just replaced others. */
static void finished_reload_is_not_slow(void **state)
{
    (void)state;
    start_reload();
    mk_lifecycle_reload_is_slow(&life);
    workers.ready = 3;
    expect(MK_STEP_HAND_OVER, MK_PHASE_HANDING_OVER);
    expect(MK_STEP_FINISH, MK_PHASE_SERVING);
    assert_false(mk_lifecycle_begin_shutdown(&life, false).kills_starting);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(start_waits_until_each_worker_serves),
        TEST(start_with_unprepared_plugin_fails_without_workers),
        TEST(start_whose_workers_cannot_fork_fails),
        TEST(start_with_early_death_fails_even_if_others_serve),
        TEST(reload_during_start_follows_when_it_serves),
        TEST(early_death_while_serving_changes_nothing),
        TEST(upgrade_is_allowed_only_while_serving),
        TEST(reload_hands_over_when_all_new_workers_serve),
        TEST(reload_without_old_workers_finishes_at_once),
        TEST(hand_over_ends_without_the_answer_of_old_workers),
        TEST(hand_over_ignores_an_early_death),
        TEST(reload_that_fails_keeps_the_old_configuration),
        TEST(reload_whose_workers_cannot_fork_is_abandoned),
        TEST(reload_with_early_death_does_not_hand_over),
        TEST(reload_requested_during_a_reload_follows_it_once),
        TEST(reload_requested_while_plugins_prepare_follows_their_failure),
        TEST(slow_reload_gives_way_to_the_next_in_each_phase),
        TEST(slow_reload_without_a_next_goes_on),
        TEST(slow_reload_gives_way_when_a_serving_worker_dies),
        TEST(reload_that_becomes_slow_after_a_death_gives_way),
        TEST(slow_trial_outlives_a_death),
        TEST(results_that_nobody_waits_for_are_ignored),
        TEST(end_waits_for_the_last_worker),
        TEST(end_at_once_follows_a_slow_end),
        TEST(end_drops_the_step_that_was_due),
        TEST(ending_begins_nothing),
        TEST(end_kills_starting_workers_that_may_hang),
        TEST(restart_pause_grows_with_early_deaths_up_to_a_limit),
        TEST(restart_after_a_long_life_has_no_pause),
        TEST(master_reloads_and_ends_by_its_table),
        TEST(each_event_has_one_effect_in_each_phase),
        TEST(master_comes_to_rest_after_any_events),
        TEST(master_hands_over_nothing_while_a_step_is_due),
        TEST(reload_stays_slow_through_its_phases),
        TEST(finished_reload_is_not_slow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
