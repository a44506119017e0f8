/* SPDX-License-Identifier: Apache-2.0 */
/* The share of a server's connections, and of the wait queue, that one client may use. */
#include "upstream/client_share.h"

#include <errno.h>

#include "unit/upstream/fixture.h"

static struct mk_addr peers[3];
static struct notification notified[8];

static void setup(void)
{
    upstream_setup(1);
    settings.max_client = MK_SETTING_UNSET;
    upstream.max = 4;
    start_pool();
    for (unsigned i = 0; i < 3; i++)
        peers[i] = (struct mk_addr){.ip = {[10] = 0xff, [11] = 0xff, [12] = 192, [15] = (uint8_t)(i + 1)}};
}

static struct mk_upstream_conn *acquire_for(unsigned i, const struct mk_addr *peer)
{
    return acquire_with(&notified[i], (struct mk_upstream_conn_options){.server = -1, .client = peer});
}

static uint64_t client_of(const struct mk_addr *peer)
{
    return mk_client_share_key(pool, peer);
}

static uint64_t *clients(void)
{
    return mk_conn_limit_backend(&upstreams.limit, servers[0].stats_slot)->clients;
}

static void serve(unsigned slot, uint64_t client)
{
    const struct mk_conn_limit_rule all = {.backend = servers[0].stats_slot};
    if (client)
        assert_true(mk_conn_limit_assign_slot(&upstreams.limit, &all, slot, client));
    else
        mk_conn_limit_unassign_slot(&upstreams.limit, all.backend, slot);
}

static bool acquire_share(const struct mk_backend *o, unsigned slot, uint64_t client)
{
    const struct mk_conn_limit_rule rule = mk_client_share_limit_rule(o);
    return mk_conn_limit_assign_slot(&upstreams.limit, &rule, slot, client);
}

static unsigned at_most(uint64_t client)
{
    return mk_conn_limit_backend(&upstreams.limit, servers[0].stats_slot)
        ->served[client % MK_CONN_LIMIT_BUCKETS];
}

static void client_share_key_is_ipv4_address_or_ipv6_network(void **state)
{
    (void)state;
    struct mk_addr a = {.ip = {0x20, 1, 0xd, 0xb8, [15] = 1}}, b = a, other = a, local = {.is_unix = 1};
    b.ip[15] = 2;
    b.port = 5;
    other.ip[7] = 1;
    assert_true(client_of(&a) == client_of(&b));
    assert_true(client_of(&a) != client_of(&other));
    assert_true(client_of(&peers[0]) != client_of(&peers[1]));
    assert_true(client_of(&peers[0]) != 0);
    assert_int_equal(client_of(&local), 0);
    assert_int_equal(client_of(NULL), 0);
}

/* The worker caches the keys of some clients. */
static void client_share_key_is_stable_when_cache_overflows(void **state)
{
    (void)state;
    static uint64_t numbers[4 * MK_CLIENT_SHARE_CACHE];
    struct mk_addr one = peers[0];
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < MK_LEN(numbers); i++) {
            one = peers[0];
            one.ip[i % 2 ? 0 : 15] = (uint8_t)i; /* varies both halves of the address */
            uint64_t now = client_of(&one);
            assert_true(now != 0 && (round == 0 || now == numbers[i]));
            assert_true(client_of(&one) == now);
            for (unsigned k = 0; k < i; k++)
                assert_true(numbers[k] != now);
            numbers[i] = now;
        }
}

static void client_share_defaults_to_half_of_connections(void **state)
{
    (void)state;
    static const struct {
        unsigned max;
        uint32_t set;
        unsigned share; /* 0: no limit */
    } cases[] = {{4, MK_SETTING_UNSET, 2},
                 {5, MK_SETTING_UNSET, 3},
                 {2, MK_SETTING_UNSET, 1},
                 {1, MK_SETTING_UNSET, 0},
                 {4, 3, 3},
                 {4, 0, 0},
                 {4, 9, 0},
                 {0, 1, 0}};
    uint64_t client = client_of(&peers[0]);
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        unsigned n = 0;
        upstream.max = cases[i].max;
        settings.max_client = cases[i].set;
        for (unsigned k = 0; k < 8; k++)
            serve(k, 0);
        while (n < 8 && !mk_client_share_is_used_up(&pool->backends[0], client))
            serve(n++, client);
        assert_int_equal(n, cases[i].share ? cases[i].share : 8);
        assert_false(mk_client_share_is_used_up(&pool->backends[0], 0));
        assert_false(mk_client_share_is_used_up(&pool->backends[0], client_of(&peers[1])));
    }
}

static void client_share_shrinks_with_limit_after_reload(void **state)
{
    (void)state;
    uint64_t client = client_of(&peers[0]);
    serve(0, client);
    assert_false(mk_client_share_is_used_up(&pool->backends[0], client));
    mk_upstream_stats_health(&upstreams.stats, servers[0].stats_slot)->max = 2;
    assert_true(mk_client_share_is_used_up(&pool->backends[0], client));
}

static void client_share_exceeded_returns_slot(void **state)
{
    (void)state;
    uint64_t client = client_of(&peers[0]);
    struct mk_backend *o = &pool->backends[0];
    assert_true(acquire_share(o, 0, client));
    assert_true(acquire_share(o, 1, client));
    assert_false(acquire_share(o, 2, client));
    assert_int_equal(clients()[2], 0);
    serve(0, 0);
    assert_true(acquire_share(o, 2, client));
    assert_true(acquire_share(o, 3, 0));
}

/* A worker died after it had incremented the bucket of a client and before it assigned a slot to the
 * client. */
static void client_share_overcounted_bucket_limits_no_client(void **state)
{
    (void)state;
    /* both clients hash into the same bucket */
    uint64_t client = client_of(&peers[0]), other = client + MK_CONN_LIMIT_BUCKETS;
    struct mk_backend *o = &pool->backends[0];
    mk_conn_limit_backend(&upstreams.limit, servers[0].stats_slot)->served[client % MK_CONN_LIMIT_BUCKETS] =
        100;
    assert_true(acquire_share(o, 0, other));
    assert_true(acquire_share(o, 1, client));
    assert_true(acquire_share(o, 2, client));
    assert_false(acquire_share(o, 3, client));
}

static void client_share_bucket_counts_served_connections(void **state)
{
    (void)state;
    uint64_t client = client_of(&peers[0]), other = client + MK_CONN_LIMIT_BUCKETS;
    serve(0, client);
    serve(1, other);
    assert_int_equal(at_most(client), 2);
    assert_int_equal(at_most(client + 1), 0);
    serve(1, client + 1); /* this client hashes into another bucket */
    assert_int_equal(at_most(client), 1);
    assert_int_equal(at_most(client + 1), 1);
    mk_conn_limit_release_slot(&upstreams.limit, servers[0].stats_slot, 0);
    serve(1, 0);
    serve(1, 0);
    assert_int_equal(at_most(client), 0);
    assert_int_equal(at_most(client + 1), 0);
}

static void client_share_used_up_request_waits_others_proceed(void **state)
{
    (void)state;
    struct mk_upstream_conn *a[3], *b[2];
    for (unsigned i = 0; i < 3; i++)
        a[i] = acquire_for(i, &peers[0]);
    wait_until_open(a[0]);
    wait_until_open(a[1]);
    assert_int_equal(mk_upstream_conn_state(a[2]), -EAGAIN);
    for (unsigned i = 0; i < 2; i++) {
        b[i] = acquire_for(3 + i, &peers[1]);
        wait_until_open(b[i]);
    }
    struct mk_upstream_conn *last = acquire_for(5, &peers[1]);
    assert_int_equal(mk_upstream_conn_state(last), -EAGAIN);
    /* the first waiting client has used up its share, but the second one has not */
    mk_upstream_conn_release(b[0], MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(mk_upstream_conn_state(a[2]), -EAGAIN);
    assert_int_equal(mk_upstream_conn_state(last), 0);
    mk_upstream_conn_release(a[0], MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(mk_upstream_conn_state(a[2]), 0);
    assert_int_equal(clients()[0] != 0, true);
    struct mk_upstream_conn *all[] = {a[1], a[2], b[1], last};
    for (size_t i = 0; i < MK_LEN(all); i++)
        mk_upstream_conn_release(all[i], MK_UPSTREAM_CONN_CLOSE);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(clients()[i], 0);
}

static void client_share_limits_idle_connections(void **state)
{
    (void)state;
    struct mk_upstream_conn *l[4];
    for (unsigned i = 0; i < 4; i++) {
        l[i] = acquire_for(i, &peers[i / 2]);
        wait_until_open(l[i]);
    }
    for (unsigned i = 0; i < 4; i++)
        mk_upstream_conn_release(l[i], MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(stats_of(0).idle, 4);
    for (unsigned i = 0; i < 3; i++)
        l[i] = acquire_for(i, &peers[0]);
    assert_int_equal(mk_upstream_conn_state(l[1]), 0);
    assert_int_equal(mk_upstream_conn_state(l[2]), -EAGAIN);
    assert_int_equal(stats_of(0).idle, 2);
    l[3] = acquire_for(3, NULL); /* no share limits a connection without a client */
    assert_int_equal(mk_upstream_conn_state(l[3]), 0);
    for (unsigned i = 0; i < 4; i++)
        mk_upstream_conn_release(l[i], MK_UPSTREAM_CONN_CLOSE);
}

static void client_share_limits_one_client_to_half_of_queue(void **state)
{
    (void)state;
    struct mk_upstream_conn *l[8];
    unsigned n = 0;
    upstream.max = 1;
    settings.queue_max = 5;
    l[n++] = acquire_for(0, &peers[0]);
    for (; n < 4; n++)
        l[n] = acquire_for(n, &peers[0]);
    /* requests of the first client use three of the five places in the queue */
    assert_int_equal(mk_upstream_conn_state(l[3]), -EAGAIN);
    l[n++] = acquire_for(4, &peers[0]);
    assert_int_equal(mk_upstream_conn_state(l[4]), -EBUSY);
    l[n++] = acquire_for(5, &peers[1]);
    l[n++] = acquire_for(6, NULL);
    assert_int_equal(mk_upstream_conn_state(l[6]), -EAGAIN);
    l[n++] = acquire_for(7, &peers[2]);
    assert_int_equal(mk_upstream_conn_state(l[7]), -EBUSY); /* the wait queue is full */
    while (n)
        mk_upstream_conn_release(l[--n], MK_UPSTREAM_CONN_CLOSE);
    settings.max_client = 0;
    for (; n < 6; n++)
        l[n] = acquire_for(n, &peers[0]);
    assert_int_equal(mk_upstream_conn_state(l[5]), -EAGAIN);
    while (n)
        mk_upstream_conn_release(l[--n], MK_UPSTREAM_CONN_CLOSE);
}

/* ---- In another worker ---- */

enum { OTHER = 9 };

static void show_other(unsigned k, uint64_t client)
{
    upstreams.limit.memory->n_rows = OTHER + 1;
    mk_conn_limit_backend(&upstreams.limit, servers[0].stats_slot)->waiters[OTHER][k] =
        (struct mk_conn_limit_waiter){mk_clock_ms() - 1000, client};
}

static void client_share_blocked_request_of_other_worker_is_skipped(void **state)
{
    (void)state;
    uint64_t client = client_of(&peers[0]);
    serve(2, client);
    serve(3, client);
    show_other(0, client);
    struct mk_upstream_conn *l = acquire_for(0, &peers[1]);
    wait_until_open(l);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_KEEP);
    serve(3, 0); /* the other client has not used up its share, and has waited longest */
    l = acquire_for(0, &peers[1]);
    assert_int_equal(mk_upstream_conn_state(l), -EAGAIN);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
    serve(3, client);
    show_other(1, client_of(&peers[2])); /* the next waiting request belongs to another client */
    l = acquire_for(0, &peers[1]);
    assert_int_equal(mk_upstream_conn_state(l), -EAGAIN);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

static void client_share_publishes_two_waiting_clients(void **state)
{
    (void)state;
    const struct mk_conn_limit_waiter *shown =
        mk_conn_limit_backend(&upstreams.limit, servers[0].stats_slot)->waiters[pool->row];
    struct mk_upstream_conn *l[7];
    unsigned n = 0;
    for (; n < 3; n++)
        l[n] = acquire_for(n, &peers[0]);
    assert_int_equal(shown[0].client, client_of(&peers[0]));
    assert_true(shown[0].since_ms > 0);
    assert_int_equal(shown[1].since_ms, 0);
    for (; n < 6; n++)
        l[n] = acquire_for(n, n < 5 ? &peers[1] : &peers[2]);
    assert_int_equal(shown[1].client, client_of(&peers[2]));
    assert_true(shown[1].since_ms > 0);
    while (n)
        mk_upstream_conn_release(l[--n], MK_UPSTREAM_CONN_CLOSE);
    assert_int_equal(shown[0].since_ms + shown[1].since_ms, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(client_share_key_is_ipv4_address_or_ipv6_network, setup),
        fixture_test(client_share_key_is_stable_when_cache_overflows, setup),
        fixture_test(client_share_defaults_to_half_of_connections, setup),
        fixture_test(client_share_shrinks_with_limit_after_reload, setup),
        fixture_test(client_share_exceeded_returns_slot, setup),
        fixture_test(client_share_overcounted_bucket_limits_no_client, setup),
        fixture_test(client_share_bucket_counts_served_connections, setup),
        fixture_test(client_share_used_up_request_waits_others_proceed, setup),
        fixture_test(client_share_limits_idle_connections, setup),
        fixture_test(client_share_limits_one_client_to_half_of_queue, setup),
        fixture_test(client_share_blocked_request_of_other_worker_is_skipped, setup),
        fixture_test(client_share_publishes_two_waiting_clients, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
