/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/client_limits.h"

#include <stdlib.h>

#include "unit/child.h"
#include "unit/test.h"

static struct mk_client_limits peers;

static struct mk_addr peer(const char *text)
{
    struct mk_sockaddr a;
    struct mk_addr p;
    assert_int_equal(mk_sockaddr_parse(mk_str_from_c(text), MK_STR(""), &a), 0);
    mk_sockaddr_to_addr(&a, &p);
    return p;
}

/* Returns the address 10.x.y.z with this number. */
static struct mk_addr peer_number(unsigned n)
{
    struct mk_addr p = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 10}};
    p.ip[13] = (uint8_t)(n >> 16);
    p.ip[14] = (uint8_t)(n >> 8);
    p.ip[15] = (uint8_t)n;
    p.port = (uint16_t)n;
    return p;
}

static mk_err acquire(const char *text)
{
    struct mk_addr p = peer(text);
    return mk_client_limits_acquire(&peers, &p);
}

static void release(const char *text)
{
    struct mk_addr p = peer(text);
    mk_client_limits_release(&peers, &p);
}

static void teardown(void)
{
    mk_client_limits_fini(&peers);
}

static void client_limits_each_address_has_own_limit(void **state)
{
    (void)state;
    mk_client_limits_init(&peers, 2);
    assert_int_equal(acquire("192.0.2.1:1"), 0);
    assert_int_equal(acquire("192.0.2.1:2"), 0);
    assert_int_equal(acquire("192.0.2.1:3"), -EDQUOT);
    assert_int_equal(acquire("192.0.2.2:1"), 0);
    release("192.0.2.1:9"); /* the port is ignored */
    assert_int_equal(acquire("192.0.2.1:3"), 0);
    assert_int_equal(acquire("192.0.2.1:4"), -EDQUOT);
    assert_int_equal(peers.n, 2);
    release("192.0.2.1:1");
    release("192.0.2.1:1");
    release("192.0.2.2:1");
    assert_int_equal(peers.n, 0);
}

static void client_limits_ipv6_network_is_one_client(void **state)
{
    (void)state;
    mk_client_limits_init(&peers, 2);
    assert_int_equal(acquire("[2001:db8:1:2::1]:1"), 0);
    assert_int_equal(acquire("[2001:db8:1:2:ffff:ffff:ffff:ffff]:1"), 0);
    assert_int_equal(acquire("[2001:db8:1:2:3::]:1"), -EDQUOT);
    assert_int_equal(acquire("[2001:db8:1:3::1]:1"), 0);
    release("[2001:db8:1:2:abcd::]:1");
    assert_int_equal(acquire("[2001:db8:1:2::9]:1"), 0);
    assert_int_equal(peers.n, 2);
}

static void client_limits_ipv4_addresses_are_separate(void **state)
{
    (void)state;
    mk_client_limits_init(&peers, 1);
    assert_int_equal(acquire("192.0.2.1:1"), 0);
    assert_int_equal(acquire("192.0.2.2:1"), 0);
    assert_int_equal(acquire("[::1]:1"), 0);
    assert_int_equal(acquire("[::ffff:192.0.2.1]:1"),
                     -EDQUOT); /* an IPv4-mapped address of the same client */
}

static void client_limits_unix_sockets_are_not_counted(void **state)
{
    (void)state;
    mk_client_limits_init(&peers, 1);
    for (int i = 0; i < 10; i++)
        assert_int_equal(acquire("unix:/a"), 0);
    release("unix:/a");
    assert_int_equal(peers.n, 0);
    mk_client_limits_fini(&peers);
    mk_client_limits_init(&peers, 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(acquire("192.0.2.1:1"), 0);
    release("192.0.2.1:1");
    assert_null(peers.slots);
}

static void release_twice(void *ctx)
{
    (void)ctx;
    release("192.0.2.1:1");
}

static void client_limits_leave_without_enter_asserts(void **state)
{
    (void)state;
    mk_client_limits_init(&peers, 1);
    assert_int_equal(acquire("192.0.2.1:1"), 0);
    release("192.0.2.1:1");
    assert_aborts(release_twice, NULL, "slot->n > 0");
}

/* Clients connect and disconnect at random, which fills and closes gaps in the table; each count must stay
 * exact. */
static void client_limits_random_clients_are_counted_exactly(void **state)
{
    (void)state;
    enum { CLIENTS = 300, STEPS = 60000, MAX = 3 };
    static unsigned there[CLIENTS];
    unsigned distinct = 0;
    memset(there, 0, sizeof there);
    mk_client_limits_init(&peers, MAX);
    srand(7);
    for (int step = 0; step < STEPS; step++) {
        /* Clients come in waves: mostly connecting, then mostly disconnecting. */
        unsigned i = (unsigned)rand() % CLIENTS;
        bool comes = rand() % 10 < (step / 2000 % 2 ? 2 : 8);
        struct mk_addr p = peer_number(i * 7);
        if (comes) {
            mk_err e = mk_client_limits_acquire(&peers, &p);
            assert_int_equal(e, there[i] == MAX ? -EDQUOT : 0);
            distinct += there[i] == 0;
            there[i] += e == 0;
        } else if (there[i]) {
            mk_client_limits_release(&peers, &p);
            there[i]--;
            distinct -= there[i] == 0;
        }
        assert_int_equal(peers.n, distinct);
    }
    assert_true(peers.cap > peers.n);
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct mk_addr p = peer_number(i * 7);
        for (; there[i]; there[i]--)
            mk_client_limits_release(&peers, &p);
    }
    assert_int_equal(peers.n, 0);
    for (size_t i = 0; i < peers.cap; i++)
        assert_int_equal(peers.slots[i].n, 0);
}

static mk_err move(const char *from, const char *to)
{
    struct mk_addr a = peer(from), b = peer(to);
    return mk_client_limits_transfer(&peers, &a, &b);
}

static void client_limits_connection_may_change_client(void **state)
{
    (void)state;
    mk_client_limits_init(&peers, 1);
    assert_int_equal(acquire("192.0.2.1:1"), 0);
    assert_int_equal(move("192.0.2.1:1", "192.0.2.1:9"), 0); /* a client at its limit keeps its slot */
    assert_int_equal(move("192.0.2.1:9", "192.0.2.2:1"), 0);
    assert_int_equal(acquire("192.0.2.1:1"), 0);
    assert_int_equal(move("192.0.2.1:1", "192.0.2.2:2"), -EDQUOT);
    /* this connection is still counted for its first address */
    assert_int_equal(acquire("192.0.2.1:2"), -EDQUOT);
    assert_int_equal(move("192.0.2.1:1", "unix:/x"), 0);
    assert_int_equal(peers.n, 1);
    assert_int_equal(move("unix:/x", "unix:/x"), 0);
    assert_int_equal(move("unix:/x", "192.0.2.2:7"), -EDQUOT);
    release("192.0.2.2:1");
    assert_int_equal(move("unix:/x", "192.0.2.2:7"), 0);
    release("192.0.2.2:7");
    assert_int_equal(peers.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(client_limits_each_address_has_own_limit, NULL, teardown),
        fixture_test(client_limits_ipv6_network_is_one_client, NULL, teardown),
        fixture_test(client_limits_ipv4_addresses_are_separate, NULL, teardown),
        fixture_test(client_limits_unix_sockets_are_not_counted, NULL, teardown),
        fixture_test(client_limits_leave_without_enter_asserts, NULL, teardown),
        fixture_test(client_limits_connection_may_change_client, NULL, teardown),
        fixture_test(client_limits_random_clients_are_counted_exactly, NULL, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
