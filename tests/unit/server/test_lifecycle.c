/* SPDX-License-Identifier: Apache-2.0 */
#include "server/lifecycle.h"

#include "unit/test.h"

static struct mk_lifecycle life;
static struct mk_lifecycle_workers workers;

static int begin(void **state)
{
    (void)state;
    life = (struct mk_lifecycle){.phase = MK_PHASE_PREPARING_FIRST};
    workers = (struct mk_lifecycle_workers){.old_wanted = 2};
    return 0;
}

static void expect(enum mk_step step, enum mk_phase phase)
{
    assert_int_equal(mk_lifecycle_next(&life, &workers), step);
    assert_int_equal(life.phase, phase);
}

/* Nothing follows, however often the master asks. */
static void expect_nothing(enum mk_phase phase)
{
    expect(MK_STEP_WAIT, phase);
    expect(MK_STEP_WAIT, phase);
}

/* Two workers of the only set. */
static void serve(void)
{
    mk_lifecycle_prepared(&life, true);
    expect(MK_STEP_START_FIRST, MK_PHASE_STARTING);
    workers =
        (struct mk_lifecycle_workers){.wanted = 2, .there = 2, .old_wanted = 2, .old_there = 2, .all = 2};
    mk_lifecycle_started(&life, true);
    expect_nothing(MK_PHASE_STARTING);
    workers.ready = 2;
    expect(MK_STEP_SERVE, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
}

static void try_reload(void)
{
    serve();
    mk_lifecycle_reload(&life);
    expect(MK_STEP_TRY, MK_PHASE_TRYING);
    expect_nothing(MK_PHASE_TRYING);
}

static void prepare_reload(void)
{
    try_reload();
    mk_lifecycle_tried(&life, true);
    expect(MK_STEP_LOAD, MK_PHASE_TRYING);
    mk_lifecycle_loaded(&life, true);
    expect_nothing(MK_PHASE_PREPARING);
}

/* Three new workers beside the two old ones. */
static void start_reload(void)
{
    prepare_reload();
    mk_lifecycle_prepared(&life, true);
    expect(MK_STEP_START_NEW, MK_PHASE_RELOADING);
    workers =
        (struct mk_lifecycle_workers){.wanted = 3, .there = 3, .old_wanted = 2, .old_there = 2, .all = 5};
    mk_lifecycle_started(&life, true);
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
    mk_lifecycle_prepared(&life, true);
    expect(MK_STEP_START_FIRST, MK_PHASE_STARTING);
    workers = (struct mk_lifecycle_workers){.wanted = 2, .there = 2, .ready = 1, .all = 2};
    expect_nothing(MK_PHASE_STARTING);
    workers.ready = 2;
    expect(MK_STEP_SERVE, MK_PHASE_SERVING);
}

static void start_with_unprepared_plugin_fails_without_workers(void **state)
{
    (void)state;
    mk_lifecycle_prepared(&life, false);
    expect(MK_STEP_FAIL, MK_PHASE_STARTING);
    assert_true(mk_lifecycle_end(&life, true).is_first);
    expect(MK_STEP_STOP, MK_PHASE_ENDING);
}

static void start_whose_workers_cannot_fork_fails(void **state)
{
    (void)state;
    mk_lifecycle_prepared(&life, true);
    expect(MK_STEP_START_FIRST, MK_PHASE_STARTING);
    mk_lifecycle_started(&life, false);
    expect(MK_STEP_FAIL, MK_PHASE_STARTING);
}

static void start_with_early_death_fails_even_if_others_serve(void **state)
{
    (void)state;
    mk_lifecycle_prepared(&life, true);
    expect(MK_STEP_START_FIRST, MK_PHASE_STARTING);
    workers = (struct mk_lifecycle_workers){.wanted = 2, .there = 2, .ready = 2, .all = 2};
    mk_lifecycle_early_death(&life);
    expect(MK_STEP_FAIL, MK_PHASE_STARTING);
}

static void reload_during_start_follows_when_it_serves(void **state)
{
    (void)state;
    mk_lifecycle_reload(&life);
    expect_nothing(MK_PHASE_PREPARING_FIRST);
    mk_lifecycle_prepared(&life, true);
    expect(MK_STEP_START_FIRST, MK_PHASE_STARTING);
    workers = (struct mk_lifecycle_workers){.wanted = 1, .there = 1, .ready = 1, .all = 1};
    expect(MK_STEP_SERVE, MK_PHASE_SERVING);
    expect(MK_STEP_TRY, MK_PHASE_TRYING);
}

/* ---- Serving ---- */

static void early_death_while_serving_changes_nothing(void **state)
{
    (void)state;
    serve();
    workers.there = workers.ready = workers.old_there = 1;
    mk_lifecycle_early_death(&life);
    expect_nothing(MK_PHASE_SERVING);
}

static void upgrade_is_allowed_only_while_serving(void **state)
{
    (void)state;
    for (int phase = MK_PHASE_PREPARING_FIRST; phase <= MK_PHASE_ENDING; phase++) {
        life.phase = (enum mk_phase)phase;
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
    mk_lifecycle_late(&life);
    expect(MK_STEP_FINISH, MK_PHASE_SERVING);
    mk_lifecycle_late(&life); /* while serving: of no hand-over */
    workers.wanted = 2;
    workers.there = workers.ready = 2;
    mk_lifecycle_reload(&life);
    expect(MK_STEP_TRY, MK_PHASE_TRYING);
    assert_false(life.late);
}

static void hand_over_ignores_an_early_death(void **state)
{
    (void)state;
    hand_over();
    mk_lifecycle_early_death(&life);
    expect_nothing(MK_PHASE_HANDING_OVER);
}

static void reload_that_fails_keeps_the_old_configuration(void **state)
{
    (void)state;
    try_reload();
    mk_lifecycle_tried(&life, false);
    expect(MK_STEP_REJECT, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
    begin(NULL);
    try_reload();
    mk_lifecycle_tried(&life, true);
    expect(MK_STEP_LOAD, MK_PHASE_TRYING);
    mk_lifecycle_loaded(&life, false);
    expect(MK_STEP_REJECT, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
    begin(NULL);
    prepare_reload();
    mk_lifecycle_prepared(&life, false);
    expect(MK_STEP_REJECT, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
    begin(NULL);
    start_reload();
    mk_lifecycle_early_death(&life);
    expect(MK_STEP_ABANDON, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
}

static void reload_whose_workers_cannot_fork_is_abandoned(void **state)
{
    (void)state;
    prepare_reload();
    mk_lifecycle_prepared(&life, true);
    expect(MK_STEP_START_NEW, MK_PHASE_RELOADING);
    mk_lifecycle_started(&life, false);
    expect(MK_STEP_ABANDON, MK_PHASE_SERVING);
}

/* An early death counts although the others serve. */
static void reload_with_early_death_does_not_hand_over(void **state)
{
    (void)state;
    start_reload();
    workers.ready = 3;
    mk_lifecycle_early_death(&life);
    expect(MK_STEP_ABANDON, MK_PHASE_SERVING);
}

static void reload_requested_during_a_reload_follows_it_once(void **state)
{
    (void)state;
    hand_over();
    mk_lifecycle_reload(&life);
    mk_lifecycle_reload(&life);
    expect_nothing(MK_PHASE_HANDING_OVER);
    workers.accept_still = false;
    expect(MK_STEP_FINISH, MK_PHASE_SERVING);
    expect(MK_STEP_TRY, MK_PHASE_TRYING);
    mk_lifecycle_tried(&life, false);
    expect(MK_STEP_REJECT, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
}

/* No other event wakes the master afterwards. */
static void reload_requested_while_plugins_prepare_follows_their_failure(void **state)
{
    (void)state;
    prepare_reload();
    mk_lifecycle_reload(&life);
    expect_nothing(MK_PHASE_PREPARING);
    mk_lifecycle_prepared(&life, false);
    expect(MK_STEP_REJECT, MK_PHASE_SERVING);
    expect(MK_STEP_TRY, MK_PHASE_TRYING);
}

static void slow_reload_gives_way_to_the_next_in_each_phase(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(reloading); i++) {
        begin(NULL);
        reloading[i]();
        enum mk_phase phase = life.phase;
        mk_lifecycle_reload(&life);
        expect_nothing(phase);
        mk_lifecycle_slow(&life);
        expect(MK_STEP_GIVE_WAY, MK_PHASE_SERVING);
        expect(MK_STEP_TRY, MK_PHASE_TRYING);
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
        enum mk_phase phase = life.phase;
        mk_lifecycle_slow(&life);
        expect_nothing(phase);
        mk_lifecycle_reload(&life);
        expect(MK_STEP_GIVE_WAY, MK_PHASE_SERVING);
    }
}

static void slow_reload_gives_way_when_a_serving_worker_dies(void **state)
{
    (void)state;
    start_reload();
    mk_lifecycle_slow(&life);
    workers.old_there = 1;
    expect(MK_STEP_GIVE_WAY, MK_PHASE_SERVING);
    expect_nothing(MK_PHASE_SERVING);
}

/* No worker dies later, so that only the timer can tell. */
static void reload_that_becomes_slow_after_a_death_gives_way(void **state)
{
    (void)state;
    start_reload();
    workers.old_there = 1;
    expect_nothing(MK_PHASE_RELOADING);
    mk_lifecycle_slow(&life);
    expect(MK_STEP_GIVE_WAY, MK_PHASE_SERVING);
}

/* The master replaces it meanwhile. */
static void slow_trial_outlives_a_death(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        begin(NULL);
        reloading[i]();
        enum mk_phase phase = life.phase;
        mk_lifecycle_slow(&life);
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
        mk_lifecycle_tried(&life, ok);
        mk_lifecycle_loaded(&life, ok);
        mk_lifecycle_prepared(&life, ok);
        mk_lifecycle_started(&life, ok);
        expect_nothing(MK_PHASE_SERVING);
    }
}

/* ---- Ending ---- */

static void end_waits_for_the_last_worker(void **state)
{
    (void)state;
    serve();
    const struct mk_lifecycle_ending ending = mk_lifecycle_end(&life, false);
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
    assert_true(mk_lifecycle_end(&life, false).is_first);
    const struct mk_lifecycle_ending second = mk_lifecycle_end(&life, true);
    assert_false(second.is_first); /* the exit code stays */
    assert_true(second.has_limit);
}

static void end_drops_the_step_that_was_due(void **state)
{
    (void)state;
    try_reload();
    mk_lifecycle_tried(&life, true);
    (void)mk_lifecycle_end(&life, false);
    expect_nothing(MK_PHASE_ENDING);
}

static void ending_begins_nothing(void **state)
{
    (void)state;
    start_reload();
    (void)mk_lifecycle_end(&life, false);
    mk_lifecycle_reload(&life);
    mk_lifecycle_slow(&life);
    mk_lifecycle_late(&life);
    mk_lifecycle_early_death(&life);
    mk_lifecycle_tried(&life, true);
    mk_lifecycle_loaded(&life, true);
    mk_lifecycle_prepared(&life, true);
    workers.ready = workers.wanted;
    workers.old_there = 0;
    expect_nothing(MK_PHASE_ENDING);
}

/* Workers that do not serve yet have nothing to finish. */
static void end_kills_starting_workers_that_may_hang(void **state)
{
    (void)state;
    start_reload();
    assert_true(mk_lifecycle_end(&life, true).kills_starting);
    begin(NULL);
    start_reload();
    assert_false(mk_lifecycle_end(&life, false).kills_starting);
    begin(NULL);
    start_reload();
    mk_lifecycle_slow(&life);
    assert_true(mk_lifecycle_end(&life, false).kills_starting);
    begin(NULL);
    serve();
    assert_false(mk_lifecycle_end(&life, true).kills_starting);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
