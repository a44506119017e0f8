/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/stats.h"

#include "unit/upstream/fake_worker.h"

static struct mk_upstream_stats stats;

static void setup(void)
{
    assert_true(mk_upstream_stats_init(&stats, NULL));
}

static void teardown(void)
{
    munmap(stats.registry, mk_stat_size());
    registry = NULL;
    munmap(stats.memory, sizeof *stats.memory);
}

/* Returns the slot for a configuration with only this server. */
static unsigned slot_of(const char *upstream, const char *server)
{
    struct mk_upstream_stats_plan plan = {0};
    unsigned slot;
    assert_true(
        mk_upstream_stats_plan_slot(&stats, &plan, mk_str_from_c(upstream), mk_str_from_c(server), &slot));
    (void)mk_upstream_stats_assign_slot(&stats, slot, mk_str_from_c(upstream), mk_str_from_c(server));
    return slot;
}

/* Returns whether the backend of the slot is shown, with this name. */
static bool is_shown(unsigned slot, const char *server)
{
    for (uint32_t at = 0; (at = mk_stat_next(stats.registry, stats.table, at));)
        if (at == mk_upstream_stats_health(&stats, slot)->series)
            return mk_str_eq(mk_stat_label(stats.registry, at, 0), mk_str_from_c(server));
    return false;
}

static void stats_server_keeps_its_slot(void **state)
{
    (void)state;
    unsigned a = slot_of("api", "127.0.0.1:1"), b = slot_of("api", "127.0.0.1:2");
    assert_int_not_equal(a, b);
    mk_upstream_stats_add_shared(mk_upstream_stats_shared(&stats, a), MK_UPSTREAM_STATS_FAILURES);
    assert_int_equal(slot_of("api", "127.0.0.1:1"), a);
    assert_int_equal(sum_stats(&stats, a).failures, 1);
    /* The names of upstream and server are separate parts of the key. */
    assert_int_not_equal(slot_of("ap", "i127.0.0.1:1"), a);
}

static void stats_hidden_server_is_shown_again(void **state)
{
    (void)state;
    unsigned a = slot_of("api", "a:1");
    assert_true(is_shown(a, "a:1"));
    mk_upstream_stats_hide_slot(&stats, a);
    assert_false(is_shown(a, "a:1"));
    assert_int_equal(slot_of("api", "a:1"), a);
    assert_true(is_shown(a, "a:1"));
}

static void stats_full_table_reuses_hidden_slots(void **state)
{
    char name[32];
    unsigned slot;
    (void)state;
    for (unsigned i = 0; i < MK_UPSTREAM_SERVERS; i++) {
        (void)snprintf(name, sizeof name, "server:%u", i);
        assert_int_equal(slot_of("u", name), i);
    }
    struct mk_upstream_stats_plan plan = {0};
    assert_false(mk_upstream_stats_plan_slot(&stats, &plan, MK_STR("u"), MK_STR("one more:1"), &slot));
    mk_upstream_stats_add_shared(mk_upstream_stats_shared(&stats, 100), MK_UPSTREAM_STATS_FAILURES);
    stats.memory->idle[100][3] = 1;
    mk_upstream_stats_hide_slot(&stats, 100);
    assert_int_equal(slot_of("u", "one more:1"), 100);
    assert_int_equal(sum_stats(&stats, 100).failures, 0);
    assert_int_equal(stats.memory->idle[100][3], 0);
}

static void stats_planned_slots_are_not_shown(void **state)
{
    struct mk_upstream_stats_plan plan = {0}, other = {0};
    unsigned old = slot_of("u", "old:1"), a, b, again;
    (void)state;
    assert_true(mk_upstream_stats_plan_slot(&stats, &plan, MK_STR("u"), MK_STR("new:1"), &a));
    assert_true(mk_upstream_stats_plan_slot(&stats, &plan, MK_STR("u"), MK_STR("new:2"), &b));
    assert_true(mk_upstream_stats_plan_slot(&stats, &plan, MK_STR("u"), MK_STR("new:1"), &again));
    assert_true(a != b && a != old && b != old && a == again);
    assert_int_equal(stats.memory->n, 1);
    assert_int_equal(mk_stat_next(stats.registry, stats.table, mk_upstream_stats_health(&stats, old)->series),
                     0);
    (void)mk_upstream_stats_assign_slot(&stats, b, MK_STR("u"), MK_STR("new:2"));
    assert_true(is_shown(b, "new:2"));
    assert_false(is_shown(a, "new:1"));
    assert_true(mk_upstream_stats_plan_slot(&stats, &other, MK_STR("u"), MK_STR("new:2"), &again));
    assert_int_equal(again, b);
}

static void stats_restore_undoes_configuration_that_never_served(void **state)
{
    struct mk_upstream_stats_snapshot first = {0}, second = {0};
    (void)state;
    mk_upstream_stats_save(&stats, &first, false);
    unsigned old = slot_of("u", "old:1");
    mk_upstream_stats_set_server(&stats, old, false, 7, 3);
    mk_upstream_stats_save(&stats, &second, false);
    unsigned new = slot_of("u", "new:1");
    mk_upstream_stats_hide_slot(&stats, old);
    /* Restoring this snapshot has no effect, because a later configuration has been published since. */
    mk_upstream_stats_restore(&stats, &first);
    assert_false(is_shown(old, "old:1"));
    mk_upstream_stats_set_server(&stats, old, true, 9, 4);
    mk_upstream_stats_restore(&stats, &second);
    assert_true(is_shown(old, "old:1"));
    const uint64_t *cells = mk_upstream_stats_shared(&stats, old);
    assert_true(cells[MK_UPSTREAM_STATS_BACKUP] == 0 && cells[MK_UPSTREAM_STATS_WEIGHT] == 7 &&
                cells[MK_UPSTREAM_STATS_MAX] == 3);
    assert_int_equal(mk_upstream_stats_health(&stats, old)->max, 3);
    assert_false(is_shown(new, "new:1"));
}

static void set_admin(const struct mk_upstream_stats *s, enum mk_server_mode mode, unsigned weight)
{
    mk_upstream_stats_set_mode(s, 0, mode, weight);
}

static void assert_admin(const struct mk_upstream_stats *s, enum mk_server_mode mode, unsigned weight)
{
    assert_int_equal(s->admin[0].mode, mode);
    assert_int_equal(s->admin[0].weight, weight);
}

/* What the administrator decides meanwhile stays as well. */
static void stats_configuration_that_never_serves_enables_no_server(void **state)
{
    struct mk_upstream_stats_snapshot first = {0}, second = {0};
    (void)state;
    mk_upstream_stats_save(&stats, &first, false);
    assert_int_equal(slot_of("u", "a:1"), 0);
    set_admin(&stats, MK_SERVER_DRAINS, 4);
    struct mk_upstream_stats next = stats;
    mk_upstream_stats_save(&next, &second, false);
    assert_admin(&next, MK_SERVER_DRAINS, 4);
    assert_ptr_equal(mk_upstream_stats_former_admin(&next, &second, 0), &stats.admin[0]);
    set_admin(&next, MK_SERVER_ENABLED, 0);
    assert_admin(&stats, MK_SERVER_DRAINS, 4);
    set_admin(&stats, MK_SERVER_MOVES, 5);
    mk_upstream_stats_set_server(&next, 0, false, 1, 0);
    mk_upstream_stats_restore(&next, &second);
    assert_admin(&stats, MK_SERVER_MOVES, 5);
    assert_int_equal(mk_upstream_stats_shared(&stats, 0)[MK_UPSTREAM_STATS_WEIGHT], 5);
    assert_false(mk_upstream_stats_follow(&stats, &first));
}

/* A renewed certificate, or a plugin, has requested the reload. */
static void stats_repeated_configuration_keeps_changes(void **state)
{
    struct mk_upstream_stats_snapshot first = {0}, second = {0};
    (void)state;
    mk_upstream_stats_save(&stats, &first, false);
    assert_int_equal(slot_of("u", "a:1"), 0);
    set_admin(&stats, MK_SERVER_DRAINS, 4);
    struct mk_upstream_stats next = stats;
    mk_upstream_stats_save(&next, &second, true);
    mk_upstream_stats_set_server(&next, 0, false, 1, 0);
    mk_upstream_stats_keep_mode(&next, 0);
    assert_admin(&next, MK_SERVER_DRAINS, 4);
    assert_int_equal(mk_upstream_stats_shared(&next, 0)[MK_UPSTREAM_STATS_WEIGHT], 4);
    set_admin(&stats, MK_SERVER_MOVES, 5); /* before it serves */
    assert_admin(&next, MK_SERVER_MOVES, 5);
    assert_true(mk_upstream_stats_is_active(&stats, mk_upstream_stats_key(MK_STR("u"), MK_STR("a:1"))));
    mk_upstream_stats_hide_slot(&stats, 0);
    assert_false(mk_upstream_stats_is_active(&stats, mk_upstream_stats_key(MK_STR("u"), MK_STR("a:1"))));
}

static void stats_server_added_before_failure_keeps_its_limit(void **state)
{
    struct mk_upstream_stats_snapshot first = {0}, second = {0};
    (void)state;
    mk_upstream_stats_save(&stats, &first, false);
    mk_upstream_stats_reserve_slot(&stats, 0, 7);
    set_admin(&stats, MK_SERVER_VACANT, 0);
    struct mk_upstream_stats next = stats;
    mk_upstream_stats_save(&next, &second, false);
    set_admin(&next, MK_SERVER_VACANT, 0);
    mk_upstream_stats_set_server(&stats, 0, false, 1, 3); /* the administrator adds a server */
    set_admin(&stats, MK_SERVER_ENABLED, 0);
    mk_upstream_stats_restore(&next, &second);
    assert_int_equal(mk_upstream_stats_health(&stats, 0)->max, 3);
    assert_admin(&stats, MK_SERVER_ENABLED, 0);
}

static void stats_draining_worker_follows_configuration_that_serves(void **state)
{
    struct mk_upstream_stats_snapshot first = {0}, second = {0}, third = {0};
    (void)state;
    mk_upstream_stats_save(&stats, &first, false);
    assert_int_equal(slot_of("u", "a:1"), 0);
    mk_upstream_stats_drain(&stats, &first); /* the worker is only replaced */
    assert_false(mk_upstream_stats_follow(&stats, &first));
    struct mk_upstream_stats next = stats;
    mk_upstream_stats_save(&next, &second, false);
    set_admin(&next, MK_SERVER_REMOVED, 0);
    assert_false(mk_upstream_stats_follow(&stats, &first));
    mk_upstream_stats_drain(&stats, &first);
    assert_true(mk_upstream_stats_follow(&stats, &first));
    assert_admin(&stats, MK_SERVER_REMOVED, 0);
    struct mk_upstream_stats last = next;
    mk_upstream_stats_save(&last, &third, false);
    set_admin(&last, MK_SERVER_MOVES, 0);
    assert_true(mk_upstream_stats_follow(&stats, &first));
    assert_admin(&stats, MK_SERVER_REMOVED, 0);
    mk_upstream_stats_drain(&next, &second);
    assert_true(mk_upstream_stats_follow(&stats, &first));
    assert_admin(&stats, MK_SERVER_MOVES, 0);
}

static void stats_clear_worker_resets_its_counts(void **state)
{
    (void)state;
    unsigned a = slot_of("u", "a:1"), b = slot_of("u", "b:1");
    stats.memory->idle[a][2] = stats.memory->idle[b][2] = stats.memory->idle[b][3] = 5;
    mk_upstream_stats_clear_worker(&stats, 2);
    assert_int_equal(stats.memory->idle[a][2] + stats.memory->idle[b][2], 0);
    assert_int_equal(stats.memory->idle[b][3], 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(stats_server_keeps_its_slot, setup, teardown),
        fixture_test(stats_hidden_server_is_shown_again, setup, teardown),
        fixture_test(stats_full_table_reuses_hidden_slots, setup, teardown),
        fixture_test(stats_planned_slots_are_not_shown, setup, teardown),
        fixture_test(stats_restore_undoes_configuration_that_never_served, setup, teardown),
        fixture_test(stats_configuration_that_never_serves_enables_no_server, setup, teardown),
        fixture_test(stats_repeated_configuration_keeps_changes, setup, teardown),
        fixture_test(stats_server_added_before_failure_keeps_its_limit, setup, teardown),
        fixture_test(stats_draining_worker_follows_configuration_that_serves, setup, teardown),
        fixture_test(stats_clear_worker_resets_its_counts, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
