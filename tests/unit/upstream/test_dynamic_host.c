/* SPDX-License-Identifier: Apache-2.0 */
/* A dynamic upstream, which connects only to allowed addresses. The test fakes the DNS resolver. */
#include <netdb.h>
#include <poll.h>

#include "unit/upstream/fixture.h"

enum { ADDRESSES = 2, HOSTS_MAX = 2 };

static struct sockaddr_in found[ADDRESSES];
static struct addrinfo answers[ADDRESSES];
static const char *resolved[ADDRESSES + 1]; /* NULL-terminated */
static uint16_t port;

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
    (void)name, (void)service, (void)hints;
    *out = NULL;
    for (int i = 0; resolved[i]; i++) {
        found[i] = (struct sockaddr_in){.sin_family = AF_INET};
        assert_int_equal(inet_pton(AF_INET, resolved[i], &found[i].sin_addr), 1);
        answers[i] = (struct addrinfo){
            .ai_family = AF_INET, .ai_addr = (struct sockaddr *)&found[i], .ai_addrlen = sizeof found[i]};
        if (i)
            answers[i - 1].ai_next = &answers[i];
        *out = answers;
    }
    return *out ? 0 : EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *all)
{
    assert_ptr_equal(all, answers);
}

static void resolve_to(const char *a, const char *b)
{
    resolved[0] = a;
    resolved[1] = b;
}

/* 127.0.0.3 stands for a private address. */
static bool is_allowed(void *ctx, const struct mk_addr *addr)
{
    assert_ptr_equal(ctx, &upstream);
    return !addr->is_unix && addr->ip[15] != 3;
}

/* Opens a second listener at the private address, with the same port. */
static void setup(void)
{
    upstream_setup(1);
    port = servers[0].port;
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(0x7f000003)};
    listening[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listening[1], (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listening[1], 64), 0);
    servers[0].host = MK_STR_NULL;
    servers[0].path = MK_STR("");
    servers[0].name = MK_STR("*");
    upstream.max_hosts = HOSTS_MAX;
    upstream.allows = is_allowed;
    upstream.allows_ctx = &upstream;
    settings.max_fails = 0;
    worker.has_threads = true;
    start_pool();
}

static struct mk_upstream_conn *acquire_host(const char *host)
{
    static struct notification notified;
    return acquire_with(&notified, (struct mk_upstream_conn_options){
                                       .server = -1, .host = mk_str_from_c(host), .port = port});
}

/* Ends the lookup, and waits for the connection. */
static struct mk_upstream_conn *connect_host(const char *host)
{
    struct mk_upstream_conn *l = acquire_host(host);
    end_work(&worker);
    wait_until_open(l);
    return l;
}

static bool accepts(unsigned i)
{
    struct pollfd wait = {.fd = listening[i], .events = POLLIN};
    int fd = poll(&wait, 1, 0) == 1 ? accept4(listening[i], NULL, NULL, SOCK_CLOEXEC) : -1;
    return fd >= 0 && close(fd) == 0;
}

static int error_of(const char *host)
{
    struct mk_upstream_conn *l = acquire_host(host);
    end_work(&worker);
    int e = mk_upstream_conn_state(l);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
    return e;
}

static void dynamic_host_uses_only_the_allowed_addresses_of_a_name(void **state)
{
    (void)state;
    resolve_to("127.0.0.3", "127.0.0.1");
    for (int i = 0; i < 4; i++) {
        struct mk_upstream_conn *l = connect_host("mixed.example");
        assert_true(accepts(0));
        mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
    }
    assert_false(accepts(1));
}

static void dynamic_host_without_allowed_address_fails(void **state)
{
    (void)state;
    resolve_to("127.0.0.3", NULL);
    assert_int_equal(error_of("private.example"), -EPERM);
    assert_int_equal(error_of("private.example"), -EPERM);
    assert_int_equal(error_of("127.0.0.3"), -EPERM);
    assert_false(accepts(1));
}

/* The name has an allowed address when it is checked, and another one later. */
static void dynamic_host_never_connects_to_an_unchecked_address(void **state)
{
    (void)state;
    resolve_to("127.0.0.1", NULL);
    mk_upstream_conn_release(connect_host("rebound.example"), MK_UPSTREAM_CONN_CLOSE);
    resolve_to("127.0.0.3", NULL);
    worker.loop.now_ms += settings.resolve_ms + 1;
    mk_upstream_conn_release(connect_host("rebound.example"), MK_UPSTREAM_CONN_CLOSE);
    worker.loop.now_ms += 3 * settings.resolve_ms;
    assert_int_equal(error_of("rebound.example"), -EPERM);
    assert_false(accepts(1));
}

static void dynamic_host_unknown_name_fails_until_it_resolves(void **state)
{
    (void)state;
    resolve_to(NULL, NULL);
    assert_int_equal(error_of("later.example"), -EHOSTUNREACH);
    resolve_to("127.0.0.1", NULL);
    assert_int_equal(error_of("later.example"), -EHOSTUNREACH); /* the failure is cached for a second */
    worker.loop.now_ms += 2000;
    mk_upstream_conn_release(connect_host("later.example"), MK_UPSTREAM_CONN_CLOSE);
}

static void dynamic_host_connections_are_reused_for_the_same_host(void **state)
{
    (void)state;
    resolve_to("127.0.0.1", NULL);
    mk_upstream_conn_release(connect_host("a.example"), MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(stats_of(0).idle, 1);
    struct mk_upstream_conn *other = connect_host("b.example"), *same = acquire_host("a.example");
    assert_false(mk_upstream_conn_was_reused(other));
    assert_true(mk_upstream_conn_was_reused(same));
    assert_str(mk_upstream_conn_server_name(same), "a.example");
    assert_int_equal(stats_of(0).open, 2);
    mk_upstream_conn_release(same, MK_UPSTREAM_CONN_CLOSE);
    mk_upstream_conn_release(other, MK_UPSTREAM_CONN_CLOSE);
    assert_int_equal(stats_of(0).open, 0);
}

static void dynamic_host_least_recently_used_makes_room(void **state)
{
    (void)state;
    resolve_to("127.0.0.1", NULL);
    mk_upstream_conn_release(connect_host("a.example"), MK_UPSTREAM_CONN_KEEP);
    mk_upstream_conn_release(connect_host("b.example"), MK_UPSTREAM_CONN_KEEP);
    mk_upstream_conn_release(acquire_host("a.example"), MK_UPSTREAM_CONN_KEEP);
    mk_upstream_conn_release(connect_host("c.example"), MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(stats_of(0).idle, 2);
    struct mk_upstream_conn *a = acquire_host("a.example"), *c = acquire_host("c.example");
    assert_true(mk_upstream_conn_was_reused(a));
    assert_true(mk_upstream_conn_was_reused(c));
    assert_int_equal(error_of("d.example"), -EBUSY); /* both hosts are in use */
    mk_upstream_conn_release(a, MK_UPSTREAM_CONN_CLOSE);
    mk_upstream_conn_release(connect_host("d.example"), MK_UPSTREAM_CONN_KEEP);
    mk_upstream_conn_release(c, MK_UPSTREAM_CONN_CLOSE);
}

/* A host is in use even while its request waits for the name, or after the request has failed. */
static void dynamic_host_in_use_is_not_replaced(void **state)
{
    (void)state;
    resolve_to(NULL, NULL);
    struct mk_upstream_conn *waits = acquire_host("a.example"), *failed = acquire_host("127.0.0.3");
    assert_int_equal(mk_upstream_conn_state(waits), -EAGAIN);
    assert_int_equal(mk_upstream_conn_state(failed), -EPERM);
    assert_int_equal(error_of("c.example"), -EBUSY);
    end_work(&worker);
    assert_int_equal(mk_upstream_conn_state(waits), -EHOSTUNREACH);
    mk_upstream_conn_release(waits, MK_UPSTREAM_CONN_CLOSE);
    mk_upstream_conn_release(failed, MK_UPSTREAM_CONN_CLOSE);
    assert_int_equal(error_of("c.example"), -EHOSTUNREACH);
}

static void dynamic_host_idle_connections_expire(void **state)
{
    (void)state;
    resolve_to("127.0.0.1", NULL);
    mk_upstream_conn_release(connect_host("a.example"), MK_UPSTREAM_CONN_KEEP);
    worker.loop.now_ms += upstream.idle_ms + 1;
    pool->timer.on_due(&pool->timer);
    assert_int_equal(stats_of(0).idle, 0);
    assert_int_equal(stats_of(0).open, 0);
}

static void dynamic_host_lookup_may_outlive_its_host(void **state)
{
    (void)state;
    resolve_to("127.0.0.1", NULL);
    mk_upstream_conn_release(acquire_host("a.example"), MK_UPSTREAM_CONN_CLOSE);
    mk_upstream_conn_release(acquire_host("127.0.0.1"), MK_UPSTREAM_CONN_CLOSE);
    mk_upstream_conn_release(acquire_host("127.0.0.2"), MK_UPSTREAM_CONN_CLOSE);
    end_work(&worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(dynamic_host_uses_only_the_allowed_addresses_of_a_name, setup),
        fixture_test(dynamic_host_without_allowed_address_fails, setup),
        fixture_test(dynamic_host_never_connects_to_an_unchecked_address, setup),
        fixture_test(dynamic_host_unknown_name_fails_until_it_resolves, setup),
        fixture_test(dynamic_host_connections_are_reused_for_the_same_host, setup),
        fixture_test(dynamic_host_least_recently_used_makes_room, setup),
        fixture_test(dynamic_host_in_use_is_not_replaced, setup),
        fixture_test(dynamic_host_idle_connections_expire, setup),
        fixture_test(dynamic_host_lookup_may_outlive_its_host, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
