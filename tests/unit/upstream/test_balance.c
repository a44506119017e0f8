/* SPDX-License-Identifier: Apache-2.0 */
/* Server selection: round robin, least connections and hash with weights; backup servers; servers that are
 * down. */
#include "upstream/balance.h"

#include "unit/upstream/fixture.h"

static struct mk_upstream_conn_options options;

static void setup(void)
{
    upstream_setup(3);
    start_pool();
    options = (struct mk_upstream_conn_options){.server = -1};
}

/* Returns the index of the chosen server, or -1 if there is none. */
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

static void disable_server(unsigned i)
{
    for (unsigned k = 0; k < settings.max_fails; k++)
        (void)mk_health_record_failure(&servers[i]);
}

static void refuse(unsigned i)
{
    settings.check = MK_STR("/health");
    mk_health_record_check(&servers[i], false);
}

/* Sets the number of connections in use. */
static void use(unsigned i, unsigned open, unsigned idle)
{
    pool->sets[0].backends[i].cells[MK_UPSTREAM_STATS_BUSY] = open - idle;
    pool->sets[0].backends[i].cells[MK_UPSTREAM_STATS_IDLE] = idle;
}

/* ---- Round robin ---- */

static void balance_round_robin_follows_weights(void **state)
{
    (void)state;
    expect(30, 10, 10, 10);
    servers[1].weight = 4;
    expect(60, 10, 40, 10);
}

static void balance_round_robin_interleaves_heavy_server(void **state)
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

/* ---- Least connections ---- */

static void balance_least_conn_chooses_fewest_in_use(void **state)
{
    (void)state;
    settings.balance = MK_BALANCE_LEAST_CONN;
    use(0, 5, 0);
    use(1, 9, 7); /* idle connections do not count */
    use(2, 4, 0);
    expect(5, 0, 5, 0);
    use(1, 9, 0);
    expect(5, 0, 0, 5);
}

static void balance_least_conn_rotates_equal_servers(void **state)
{
    (void)state;
    settings.balance = MK_BALANCE_LEAST_CONN;
    expect(30, 10, 10, 10);
    upstream.n = 2;
    expect(20, 10, 10, 0);
}

static void balance_least_conn_follows_weights(void **state)
{
    (void)state;
    settings.balance = MK_BALANCE_LEAST_CONN;
    servers[2].weight = 4;
    use(0, 1, 0);
    use(1, 1, 0);
    use(2, 3, 0); /* 3/4 is less than 1/1 */
    expect(5, 0, 0, 5);
    use(2, 9, 0);
    unsigned counts[3];
    choose_often(10, counts);
    assert_int_equal(counts[2], 0);
}

static void balance_least_conn_idle_servers_share_by_weight(void **state)
{
    (void)state;
    settings.balance = MK_BALANCE_LEAST_CONN;
    servers[0].weight = 2;
    expect(60, 30, 15, 15);
    use(2, 1, 0); /* is no longer equal: the two others are idle */
    expect(30, 20, 10, 0);
    use(2, 0, 0);
    use(0, 1, 0);
    expect(30, 0, 15, 15);
}

static void balance_least_conn_equally_busy_servers_share_by_weight(void **state)
{
    (void)state;
    settings.balance = MK_BALANCE_LEAST_CONN;
    servers[1].weight = 3;
    use(0, 2, 0);
    use(1, 6, 0);
    use(2, 3, 0);
    expect(40, 10, 30, 0);
}

/* ---- Hash ---- */

static void balance_hash_maps_equal_values_to_one_server(void **state)
{
    (void)state;
    unsigned counts[3] = {0};
    settings.balance = MK_BALANCE_HASH;
    options.has_hash = true;
    for (uint64_t i = 0; i < 3000; i++) {
        options.hash = i * 0x9e3779b97f4a7c15;
        int first = choose();
        assert_int_equal(choose(), first);
        counts[first]++;
    }
    for (unsigned i = 0; i < 3; i++)
        assert_in_range(counts[i], 800, 1200);
}

static void balance_hash_follows_weights(void **state)
{
    (void)state;
    unsigned counts[3] = {0};
    settings.balance = MK_BALANCE_HASH;
    options.has_hash = true;
    servers[0].weight = 4;
    for (uint64_t i = 0; i < 3000; i++) {
        options.hash = i * 0x9e3779b97f4a7c15;
        counts[choose()]++;
    }
    assert_in_range(counts[0], 1800, 2200);
}

static void balance_hash_server_down_moves_only_its_values(void **state)
{
    (void)state;
    int before[300];
    settings.balance = MK_BALANCE_HASH;
    options.has_hash = true;
    for (uint64_t i = 0; i < 300; i++) {
        options.hash = i * 0x9e3779b97f4a7c15;
        before[i] = choose();
    }
    disable_server(1);
    for (uint64_t i = 0; i < 300; i++) {
        options.hash = i * 0x9e3779b97f4a7c15;
        int now = choose();
        assert_true(before[i] == 1 ? now != 1 : now == before[i]);
    }
}

static void balance_hash_without_value_uses_round_robin(void **state)
{
    (void)state;
    settings.balance = MK_BALANCE_HASH;
    expect(30, 10, 10, 10);
}

/* ---- Servers that are down ---- */

static void balance_server_down_gets_no_requests(void **state)
{
    (void)state;
    disable_server(1);
    expect(20, 10, 0, 10);
    refuse(0);
    expect(10, 0, 0, 10);
}

static void balance_all_servers_failed_tries_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        disable_server(i);
    expect(30, 10, 10, 10);
    refuse(2); /* no request tries a server that fails its health check */
    expect(20, 10, 10, 0);
    refuse(0);
    refuse(1);
    assert_int_equal(choose(), -1);
}

static void balance_single_failed_server_is_tried(void **state)
{
    (void)state;
    upstream.n = 1;
    disable_server(0);
    assert_int_equal(choose(), 0);
    assert_int_equal(choose_but(1), -1);
    refuse(0);
    assert_int_equal(choose(), -1);
}

static void balance_skips_servers_already_tried(void **state)
{
    (void)state;
    assert_int_equal(choose_but(5), 1);
    options.tried = 2;
    assert_int_equal(choose_but(1), 2);
    assert_int_equal(choose_but(5), -1);
}

static void balance_skips_unresolved_server(void **state)
{
    (void)state;
    pool->backends[0].names.n = 0;
    pool->backends[0].names.is_fixed = false;
    expect(20, 0, 10, 10);
}

/* ---- Backup servers ---- */

static void balance_backup_serves_while_primaries_are_down(void **state)
{
    (void)state;
    servers[2].backup = true;
    expect(20, 10, 10, 0);
    disable_server(0);
    expect(10, 0, 10, 0);
    disable_server(1);
    expect(10, 0, 0, 10);
    disable_server(2);
    expect(30, 10, 10, 10);
}

/* ---- Sticky sessions ---- */

static void balance_sticky_server_is_used_while_up(void **state)
{
    (void)state;
    options.server = 1;
    expect(5, 0, 5, 0);
    disable_server(1);
    expect(10, 5, 0, 5);
    options.server = 3; /* server 3 does not exist */
    assert_int_equal(choose_but(3), 2);
}

static void balance_sticky_backup_is_used_only_while_backups_serve(void **state)
{
    (void)state;
    servers[2].backup = true;
    options.server = 2;
    expect(10, 5, 5, 0);
    disable_server(0);
    expect(5, 0, 5, 0);
    disable_server(1);
    expect(5, 0, 0, 5);
}

static void balance_sticky_selects_among_backups(void **state)
{
    (void)state;
    servers[1].backup = servers[2].backup = true;
    options.server = 2;
    expect(5, 5, 0, 0);
    disable_server(0);
    expect(5, 0, 0, 5);
}

/* ---- Changes of the administrator ---- */

static void set_mode(unsigned i, enum mk_server_mode mode, unsigned weight)
{
    mk_upstream_stats_set_mode(&upstreams.stats, i, mode, weight);
}

static void balance_drained_server_gets_only_sticky_clients(void **state)
{
    (void)state;
    set_mode(1, MK_SERVER_DRAINS, 0);
    expect(10, 5, 0, 5);
    options.server = 1;
    expect(5, 0, 5, 0);
    set_mode(1, MK_SERVER_MOVES, 0);
    expect(10, 5, 0, 5);
    set_mode(1, MK_SERVER_ENABLED, 0);
    expect(5, 0, 5, 0);
}

static void balance_drained_server_is_not_used_if_others_are_down(void **state)
{
    (void)state;
    set_mode(1, MK_SERVER_DRAINS, 0);
    disable_server(0);
    disable_server(2);
    for (unsigned i = 0; i < 6; i++)
        assert_int_not_equal(choose(), 1);
    set_mode(0, MK_SERVER_REMOVED, 0);
    set_mode(2, MK_SERVER_VACANT, 0);
    assert_int_equal(choose(), -1);
}

static void balance_drained_primary_gives_way_to_backup(void **state)
{
    (void)state;
    servers[2].backup = true;
    set_mode(0, MK_SERVER_DRAINS, 0);
    expect(5, 0, 5, 0);
    set_mode(1, MK_SERVER_MOVES, 0);
    expect(5, 0, 0, 5);
}

static void balance_weight_can_be_set(void **state)
{
    (void)state;
    set_mode(2, MK_SERVER_ENABLED, 4);
    expect(60, 10, 10, 40);
    settings.balance = MK_BALANCE_LEAST_CONN;
    use(0, 1, 0), use(1, 1, 0), use(2, 3, 0);
    assert_int_equal(choose(), 2);
    set_mode(2, MK_SERVER_ENABLED, 1);
    assert_int_not_equal(choose(), 2);
}

static void balance_hash_drained_server_moves_only_its_values(void **state)
{
    (void)state;
    int before[60];
    settings.balance = MK_BALANCE_HASH;
    options.has_hash = true;
    for (unsigned i = 0; i < 60; i++) {
        options.hash = i;
        before[i] = choose();
    }
    set_mode(1, MK_SERVER_DRAINS, 0);
    for (unsigned i = 0; i < 60; i++) {
        options.hash = i;
        int now = choose();
        assert_true(before[i] == 1 ? now != 1 : now == before[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(balance_round_robin_follows_weights, setup),
        fixture_test(balance_round_robin_interleaves_heavy_server, setup),
        fixture_test(balance_least_conn_chooses_fewest_in_use, setup),
        fixture_test(balance_least_conn_rotates_equal_servers, setup),
        fixture_test(balance_least_conn_follows_weights, setup),
        fixture_test(balance_least_conn_idle_servers_share_by_weight, setup),
        fixture_test(balance_least_conn_equally_busy_servers_share_by_weight, setup),
        fixture_test(balance_hash_maps_equal_values_to_one_server, setup),
        fixture_test(balance_hash_follows_weights, setup),
        fixture_test(balance_hash_server_down_moves_only_its_values, setup),
        fixture_test(balance_hash_without_value_uses_round_robin, setup),
        fixture_test(balance_server_down_gets_no_requests, setup),
        fixture_test(balance_all_servers_failed_tries_all, setup),
        fixture_test(balance_single_failed_server_is_tried, setup),
        fixture_test(balance_skips_servers_already_tried, setup),
        fixture_test(balance_skips_unresolved_server, setup),
        fixture_test(balance_backup_serves_while_primaries_are_down, setup),
        fixture_test(balance_sticky_server_is_used_while_up, setup),
        fixture_test(balance_sticky_backup_is_used_only_while_backups_serve, setup),
        fixture_test(balance_sticky_selects_among_backups, setup),
        fixture_test(balance_drained_server_gets_only_sticky_clients, setup),
        fixture_test(balance_drained_server_is_not_used_if_others_are_down, setup),
        fixture_test(balance_drained_primary_gives_way_to_backup, setup),
        fixture_test(balance_weight_can_be_set, setup),
        fixture_test(balance_hash_drained_server_moves_only_its_values, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
