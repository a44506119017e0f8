/* SPDX-License-Identifier: Apache-2.0 */
/* Which server gets a request: turns, least and hash with weights; backups; servers that are out. */
#include "upstream/balance.h"

#include "unit/upstream/set.h"

static struct mk_upstream_conn_options options;

static int start(void **state)
{
    (void)state;
    group_begin(3);
    begin_pool();
    options = (struct mk_upstream_conn_options){.server = -1};
    return 0;
}

/* The index; -1: none. */
static int choose_but(uint64_t avoid)
{
    struct mk_backend *o = mk_balance_choose(&pool->sets[0], &options, avoid);
    return o ? o->server->index : -1;
}

static int choose(void)
{
    return choose_but(0);
}

static void choose_often(unsigned n, unsigned counts[3])
{
    memset(counts, 0, 3 * sizeof *counts);
    while (n--)
        counts[choose()]++;
}

static void expect(unsigned n, unsigned a, unsigned b, unsigned c)
{
    unsigned counts[3];
    choose_often(n, counts);
    assert_int_equal(counts[0], a);
    assert_int_equal(counts[1], b);
    assert_int_equal(counts[2], c);
}

static void take_out(unsigned i)
{
    for (unsigned k = 0; k < settings.max_fails; k++)
        (void)mk_health_record_failure(&servers[i]);
}

static void refuse(unsigned i)
{
    settings.check = MK_STR("/health");
    mk_health_record_check(&servers[i], false);
}

/* So many connections are in use. */
static void use(unsigned i, unsigned open, unsigned idle)
{
    pool->sets[0].backends[i].cells[MK_UPSTREAM_STATS_BUSY] = open - idle;
    pool->sets[0].backends[i].cells[MK_UPSTREAM_STATS_IDLE] = idle;
}

/* ---- Turns ---- */

static void turns_go_by_weight(void **state)
{
    (void)state;
    expect(30, 10, 10, 10);
    servers[1].weight = 4;
    expect(60, 10, 40, 10);
}

static void turns_of_a_heavy_server_are_spread(void **state)
{
    (void)state;
    size_t in_a_row = 0, most = 0;
    servers[0].weight = 2;
    for (unsigned i = 0; i < 40; i++) {
        in_a_row = choose() == 0 ? in_a_row + 1 : 0;
        most = mk_max(most, in_a_row);
    }
    assert_in_range(most, 1, 2);
}

/* ---- Least ---- */

static void least_takes_the_server_with_the_fewest_in_use(void **state)
{
    (void)state;
    settings.balance = MK_BALANCE_LEAST;
    use(0, 5, 0);
    use(1, 9, 7); /* idle ones do not count */
    use(2, 4, 0);
    expect(5, 0, 5, 0);
    use(1, 9, 0);
    expect(5, 0, 0, 5);
}

static void least_gives_equal_servers_turns(void **state)
{
    (void)state;
    settings.balance = MK_BALANCE_LEAST;
    expect(30, 10, 10, 10);
    upstream.n = 2;
    expect(20, 10, 10, 0);
}

static void least_goes_by_weight(void **state)
{
    (void)state;
    settings.balance = MK_BALANCE_LEAST;
    servers[2].weight = 4;
    use(0, 1, 0);
    use(1, 1, 0);
    use(2, 3, 0); /* (3 + 1) / 4 is less than (1 + 1) / 1 */
    expect(5, 0, 0, 5);
    use(2, 9, 0);
    unsigned counts[3];
    choose_often(10, counts);
    assert_int_equal(counts[2], 0);
}

/* ---- Hash ---- */

static void hash_sends_equal_values_to_one_server(void **state)
{
    (void)state;
    unsigned counts[3] = {0};
    settings.balance = MK_BALANCE_HASH;
    options.counts = true;
    for (uint64_t i = 0; i < 3000; i++) {
        options.hash = i * 0x9e3779b97f4a7c15;
        int first = choose();
        assert_int_equal(choose(), first);
        counts[first]++;
    }
    for (unsigned i = 0; i < 3; i++)
        assert_in_range(counts[i], 800, 1200);
}

static void hash_goes_by_weight(void **state)
{
    (void)state;
    unsigned counts[3] = {0};
    settings.balance = MK_BALANCE_HASH;
    options.counts = true;
    servers[0].weight = 4;
    for (uint64_t i = 0; i < 3000; i++) {
        options.hash = i * 0x9e3779b97f4a7c15;
        counts[choose()]++;
    }
    assert_in_range(counts[0], 1800, 2200);
}

static void hash_moves_only_the_values_of_a_server_that_is_out(void **state)
{
    (void)state;
    int before[300];
    settings.balance = MK_BALANCE_HASH;
    options.counts = true;
    for (uint64_t i = 0; i < 300; i++) {
        options.hash = i * 0x9e3779b97f4a7c15;
        before[i] = choose();
    }
    take_out(1);
    for (uint64_t i = 0; i < 300; i++) {
        options.hash = i * 0x9e3779b97f4a7c15;
        int now = choose();
        assert_true(before[i] == 1 ? now != 1 : now == before[i]);
    }
}

static void hash_without_a_value_takes_turns(void **state)
{
    (void)state;
    settings.balance = MK_BALANCE_HASH;
    expect(30, 10, 10, 10);
}

/* ---- Servers that are out ---- */

static void a_server_that_is_out_gets_nothing(void **state)
{
    (void)state;
    take_out(1);
    expect(20, 10, 0, 10);
    refuse(0);
    expect(10, 0, 0, 10);
}

static void servers_that_all_failed_are_all_tried(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        take_out(i);
    expect(30, 10, 10, 10);
    refuse(2); /* but not one that fails its check */
    expect(20, 10, 10, 0);
    refuse(0);
    refuse(1);
    assert_int_equal(choose(), -1);
}

static void a_single_server_that_failed_is_tried(void **state)
{
    (void)state;
    upstream.n = 1;
    take_out(0);
    assert_int_equal(choose(), 0);
    assert_int_equal(choose_but(1), -1);
    refuse(0);
    assert_int_equal(choose(), -1);
}

static void a_server_that_was_tried_is_not_chosen(void **state)
{
    (void)state;
    assert_int_equal(choose_but(5), 1);
    options.avoid = 2;
    assert_int_equal(choose_but(1), 2);
    assert_int_equal(choose_but(5), -1);
}

static void a_server_without_an_address_is_not_chosen(void **state)
{
    (void)state;
    pool->backends[0].names.n = 0;
    pool->backends[0].names.is_fixed = false;
    expect(20, 0, 10, 10);
}

/* ---- Backups ---- */

static void a_backup_serves_while_no_other_server_does(void **state)
{
    (void)state;
    servers[2].backup = true;
    expect(20, 10, 10, 0);
    take_out(0);
    expect(10, 0, 10, 0);
    take_out(1);
    expect(10, 0, 0, 10);
    take_out(2);
    expect(30, 10, 10, 10);
}

/* ---- Sticky sessions ---- */

static void a_wish_is_granted_while_the_server_is_up(void **state)
{
    (void)state;
    options.server = 1;
    expect(5, 0, 5, 0);
    take_out(1);
    expect(10, 5, 0, 5);
    options.server = 3; /* there is none */
    assert_int_equal(choose_but(3), 2);
}

static void a_wish_for_a_backup_is_granted_only_while_backups_serve(void **state)
{
    (void)state;
    servers[2].backup = true;
    options.server = 2;
    expect(10, 5, 5, 0);
    take_out(0);
    expect(5, 0, 5, 0);
    take_out(1);
    expect(5, 0, 0, 5);
}

static void a_wish_chooses_among_backups(void **state)
{
    (void)state;
    servers[1].backup = servers[2].backup = true;
    options.server = 2;
    expect(5, 5, 0, 0);
    take_out(0);
    expect(5, 0, 0, 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, harness_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(turns_go_by_weight),
        TEST(turns_of_a_heavy_server_are_spread),
        TEST(least_takes_the_server_with_the_fewest_in_use),
        TEST(least_gives_equal_servers_turns),
        TEST(least_goes_by_weight),
        TEST(hash_sends_equal_values_to_one_server),
        TEST(hash_goes_by_weight),
        TEST(hash_moves_only_the_values_of_a_server_that_is_out),
        TEST(hash_without_a_value_takes_turns),
        TEST(a_server_that_is_out_gets_nothing),
        TEST(servers_that_all_failed_are_all_tried),
        TEST(a_single_server_that_failed_is_tried),
        TEST(a_server_that_was_tried_is_not_chosen),
        TEST(a_server_without_an_address_is_not_chosen),
        TEST(a_backup_serves_while_no_other_server_does),
        TEST(a_wish_is_granted_while_the_server_is_up),
        TEST(a_wish_for_a_backup_is_granted_only_while_backups_serve),
        TEST(a_wish_chooses_among_backups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
