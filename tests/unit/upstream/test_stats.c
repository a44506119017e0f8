/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/stats.h"

#include "unit/upstream/world.h"

static struct mk_stats stats;

static int start(void **state)
{
    (void)state;
    assert_true(mk_stats_open(&stats, NULL));
    return 0;
}

static int stop(void **state)
{
    (void)state;
    munmap(stats.shown, sizeof *stats.shown);
    munmap(stats.memory, sizeof *stats.memory);
    return 0;
}

/* Of a configuration that has this server alone. */
static unsigned slot_of(const char *upstream, const char *server)
{
    struct mk_stats_plan plan = {0};
    unsigned slot;
    assert_true(mk_stats_find(&stats, &plan, mk_str_from_c(upstream), mk_str_from_c(server), &slot));
    (void)mk_stats_set(&stats, slot, mk_str_from_c(upstream), mk_str_from_c(server));
    return slot;
}

static void a_server_keeps_its_slot(void **state)
{
    (void)state;
    unsigned a = slot_of("api", "127.0.0.1:1"), b = slot_of("api", "127.0.0.1:2");
    assert_int_not_equal(a, b);
    mk_stats_info(&stats, a)->requests = 7;
    assert_int_equal(slot_of("api", "127.0.0.1:1"), a);
    assert_int_equal(mk_stats_info(&stats, a)->requests, 7);
    /* Where the name of one ends and the other begins matters. */
    assert_int_not_equal(slot_of("ap", "i127.0.0.1:1"), a);
}

static void a_hidden_server_is_shown_again(void **state)
{
    struct mk_upstream_info info;
    (void)state;
    unsigned a = slot_of("api", "a:1");
    mk_stats_hide(&stats, a);
    assert_true(mk_upstream_info_at(stats.shown, a, &info));
    assert_string_equal(info.server, "");
    assert_int_equal(slot_of("api", "a:1"), a);
    assert_true(mk_upstream_info_at(stats.shown, a, &info));
    assert_string_equal(info.server, "a:1");
    assert_false(mk_upstream_info_at(stats.shown, a + 1, &info));
}

static void a_full_table_takes_hidden_slots(void **state)
{
    char name[32];
    unsigned slot;
    (void)state;
    for (unsigned i = 0; i < MK_UPSTREAM_SERVERS; i++) {
        (void)snprintf(name, sizeof name, "server:%u", i);
        assert_int_equal(slot_of("u", name), i);
    }
    struct mk_stats_plan plan = {0};
    assert_false(mk_stats_find(&stats, &plan, MK_STR("u"), MK_STR("one more:1"), &slot));
    mk_stats_info(&stats, 100)->failures = 9;
    mk_stats_hide(&stats, 100);
    assert_int_equal(slot_of("u", "one more:1"), 100);
    assert_int_equal(mk_stats_info(&stats, 100)->failures, 0);
}

static void what_is_only_looked_for_is_not_shown(void **state)
{
    struct mk_stats_plan plan = {0}, other = {0};
    unsigned old = slot_of("u", "old:1"), a, b, again;
    (void)state;
    assert_true(mk_stats_find(&stats, &plan, MK_STR("u"), MK_STR("new:1"), &a));
    assert_true(mk_stats_find(&stats, &plan, MK_STR("u"), MK_STR("new:2"), &b));
    assert_true(mk_stats_find(&stats, &plan, MK_STR("u"), MK_STR("new:1"), &again));
    assert_true(a != b && a != old && b != old && a == again);
    assert_int_equal(stats.shown->n, 1);
    (void)mk_stats_set(&stats, b, MK_STR("u"), MK_STR("new:2"));
    assert_string_equal(mk_stats_info(&stats, a)->server, "");
    assert_true(mk_stats_find(&stats, &other, MK_STR("u"), MK_STR("new:2"), &again));
    assert_int_equal(again, b);
}

static void one_that_never_serves_leaves_what_was_shown(void **state)
{
    struct mk_stats_former first = {0}, second = {0};
    (void)state;
    mk_stats_save(&stats, &first);
    unsigned old = slot_of("u", "old:1");
    mk_stats_info(&stats, old)->weight = 7;
    mk_stats_save(&stats, &second);
    unsigned new = slot_of("u", "new:1");
    mk_stats_hide(&stats, old);
    mk_stats_restore(&stats, &first); /* it served, and goes when another one does */
    assert_string_equal(mk_stats_info(&stats, old)->server, "");
    mk_stats_info(&stats, old)->weight = 9;
    mk_stats_restore(&stats, &second);
    assert_string_equal(mk_stats_info(&stats, old)->server, "old:1");
    assert_int_equal(mk_stats_info(&stats, old)->weight, 7);
    assert_string_equal(mk_stats_info(&stats, new)->server, "");
}

static void long_names_are_cut(void **state)
{
    char name[200];
    struct mk_upstream_info info;
    (void)state;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    unsigned slot = slot_of(name, name);
    assert_true(mk_upstream_info_at(stats.shown, slot, &info));
    assert_int_equal(strlen(info.server), MK_UPSTREAM_NAME - 1);
    const struct mk_upstream_info *shown = mk_stats_info(&stats, slot); /* as it is, with its NULs */
    assert_int_equal(shown->server[MK_UPSTREAM_NAME - 1], '\0');
    assert_int_equal(shown->upstream[MK_UPSTREAM_NAME - 1], '\0');
    assert_int_equal(shown->state, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_server_keeps_its_slot, start, stop),
        cmocka_unit_test_setup_teardown(a_hidden_server_is_shown_again, start, stop),
        cmocka_unit_test_setup_teardown(a_full_table_takes_hidden_slots, start, stop),
        cmocka_unit_test_setup_teardown(what_is_only_looked_for_is_not_shown, start, stop),
        cmocka_unit_test_setup_teardown(one_that_never_serves_leaves_what_was_shown, start, stop),
        cmocka_unit_test_setup_teardown(long_names_are_cut, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
