/* SPDX-License-Identifier: Apache-2.0 */
/* A server name has several addresses, which appear, disappear and fail. The test fakes the DNS resolver. */
#include <netdb.h>

#include "unit/upstream/fixture.h"
#include "upstream/health_check.h"

enum { ADDRESSES = 2 };

static struct sockaddr_in found[ADDRESSES];
static struct addrinfo answers[ADDRESSES];
static const char *resolved[ADDRESSES + 1]; /* NULL-terminated */
static unsigned n_asked;

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
    (void)name, (void)service, (void)hints;
    *out = NULL;
    n_asked++;
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

/* Listens on another address with the port of the first server. Returns -1 if another program uses it. */
static int listen_at(const char *address)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(servers[0].port)};
    assert_int_equal(inet_pton(AF_INET, address, &at.sin_addr), 1);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0)
        mk_fd_close(&fd);
    assert_true(fd < 0 || listen(fd, 64) == 0);
    return fd;
}

static void setup(void)
{
    unsigned n = 0;
    upstream_init(1);
    while ((listening[1] = listen_at("127.0.0.2")) < 0) {
        upstream_fini();
        assert_true(++n < 20);
        upstream_init(1);
    }
    harness_defer(upstream_teardown, NULL);
    servers[0].host = MK_STR("name.example");
    settings.resolve_ms = 60000;
    worker.has_threads = true;
}

static struct backend_stats info(void)
{
    return sum_stats(&upstreams.stats, servers[0].stats_slot);
}

/* Returns whether a connection has arrived. */
static bool accepts(unsigned i)
{
    int fd = accept4(listening[i], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return fd >= 0 && close(fd) == 0;
}

static void begin(void)
{
    start_pool();
    end_work(&worker);
}

static void resolve_again(void)
{
    worker.loop.now_ms += settings.resolve_ms;
    mk_resolver_refresh(&pool->backends[0].names);
    end_work(&worker);
}

/* A stopping worker must not wait for a lookup, which takes many seconds if the name server does not
 * respond. */
static void resolver_stopping_worker_starts_no_lookup(void **state)
{
    (void)state;
    resolve_to("127.0.0.1", NULL);
    start_pool();
    assert_non_null(worker.work);
    n_asked = 0;
    mk_pool_stop(pool);
    assert_int_equal(n_asked, 0);
    begin();
    assert_int_equal(n_asked, 1);
}

/* The request continues immediately, not at the next sweep. */
static void resolver_waiting_request_continues_when_name_resolves(void **state)
{
    struct notification notified;
    (void)state;
    resolve_to("127.0.0.1", NULL);
    start_pool();
    struct mk_upstream_conn *l = acquire(&notified);
    assert_int_equal(mk_upstream_conn_state(l), -EAGAIN);
    assert_false(mk_upstream_conn_has_socket(l));
    end_work(&worker);
    assert_true(mk_upstream_conn_has_socket(l));
    wait_until_open(l);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

static void resolver_removed_address_closes_connections(void **state)
{
    struct notification notified;
    (void)state;
    resolve_to("127.0.0.1", NULL);
    begin();
    struct mk_upstream_conn *idle = acquire(&notified), *busy = acquire(&notified);
    wait_until_open(idle);
    wait_until_open(busy);
    mk_upstream_conn_release(idle, MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(info().idle, 1);
    resolve_to("127.0.0.2", NULL);
    resolve_again();
    assert_int_equal(info().open, 1);
    mk_upstream_conn_release(busy, MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(info().open, 0);
    struct mk_upstream_conn *l = acquire(&notified);
    wait_until_open(l);
    assert_true(accepts(1));
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(info().idle, 1);
}

static void resolver_remaining_address_keeps_connections(void **state)
{
    struct notification notified;
    (void)state;
    resolve_to("127.0.0.1", "127.0.0.2");
    begin();
    struct mk_upstream_conn *l = acquire(&notified);
    wait_until_open(l);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_KEEP);
    resolve_to("127.0.0.1", NULL);
    resolve_again();
    assert_int_equal(info().idle, 1);
    resolve_to("127.0.0.2", "127.0.0.1");
    resolve_again();
    resolve_to(NULL, NULL); /* the name server fails, so the known addresses stay in use */
    resolve_again();
    assert_int_equal(info().idle, 1);
}

/* Fills the listen queue, so that further connections stay pending until they time out. */
static void fill_queue(unsigned i, int fds[4])
{
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    assert_int_equal(getsockname(listening[i], (struct sockaddr *)&at, &len), 0);
    assert_int_equal(listen(listening[i], 0), 0);
    for (int k = 0; k < 4; k++) {
        fds[k] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(fds[k], (struct sockaddr *)&at, len);
    }
}

static void resolver_failed_address_is_skipped(void **state)
{
    struct notification notified;
    int full[4];
    (void)state;
    settings.connect_ms = 50;
    settings.max_fails = 1;
    resolve_to("127.0.0.1", "127.0.0.2");
    fill_queue(0, full);
    begin();
    struct mk_upstream_conn *links[4];
    for (int i = 0; i < 4; i++) {
        links[i] = acquire(&notified);
        wait_until_open(links[i]);
        assert_true(accepts(1));
    }
    assert_int_equal(info().failures, 0);
    for (int i = 0; i < 4; i++) {
        mk_upstream_conn_release(links[i], MK_UPSTREAM_CONN_CLOSE);
        close(full[i]);
    }
}

static void resolver_server_fails_when_all_addresses_fail(void **state)
{
    struct notification notified;
    (void)state;
    settings.max_fails = 1;
    resolve_to("127.0.0.1", "127.0.0.2");
    stop_server(0);
    stop_server(1);
    begin();
    for (int i = 0; i < 2; i++) {
        struct mk_upstream_conn *l = acquire(&notified);
        for (int k = 0; mk_upstream_conn_state(l) == -EAGAIN && k < 100; k++)
            assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
        assert_int_equal(mk_upstream_conn_state(l), -ECONNREFUSED);
        mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
    }
    assert_int_equal(info().failures, 2);
}

static void resolver_check_passes_with_one_good_address(void **state)
{
    (void)state;
    settings.check = MK_STR("connect");
    settings.check_ms = 50;
    resolve_to("127.0.0.1", "127.0.0.2");
    stop_server(0);
    begin();
    for (int i = 0; info().checks < 3 && i < 300; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_int_equal(info().checks_failed, 0);
    stop_server(1);
    for (int i = 0; !info().checks_failed && i < 300; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_true(mk_health_is_check_failed(&servers[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(resolver_stopping_worker_starts_no_lookup, setup),
        fixture_test(resolver_waiting_request_continues_when_name_resolves, setup),
        fixture_test(resolver_removed_address_closes_connections, setup),
        fixture_test(resolver_remaining_address_keeps_connections, setup),
        fixture_test(resolver_failed_address_is_skipped, setup),
        fixture_test(resolver_server_fails_when_all_addresses_fail, setup),
        fixture_test(resolver_check_passes_with_one_good_address, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
