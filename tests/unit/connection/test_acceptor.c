/* SPDX-License-Identifier: Apache-2.0 */
/* Accepting connections, and the treatment of connections over the limit. */
#include "connection/acceptor.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "os/sock.h"
#include "unit/connection/fixture.h"
#include "unit/fixtures.h"

enum { CLIENTS_MAX = 8 };

static struct conn_fixture t;
static struct mk_acceptor acceptor;
static struct mk_sockaddr where;
static int listener, clients[CLIENTS_MAX];
static unsigned n_clients;

static void on_conn_closed(struct mk_conn_manager *s)
{
    (void)s;
    mk_acceptor_resume(&acceptor);
}

static void setup(void)
{
    conn_setup(&t);
    listener_setup(&listener, &where);
    t.manager.on_conn_closed = on_conn_closed;
    n_clients = 0;
}

static void teardown(void)
{
    mk_acceptor_stop(&acceptor);
    while (n_clients)
        close(clients[--n_clients]);
    t.manager.on_conn_closed = NULL;
}

static void accept_all(void)
{
    assert_int_equal(mk_acceptor_start(&acceptor, &t.manager, listener), 0);
}

/* Connects a client and sends a request. */
static int call(void)
{
    static const char request[] = "GET /early HTTP/1.1\r\nHost: a\r\n\r\n";
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(n_clients < CLIENTS_MAX);
    assert_int_equal(connect(fd, &where.any, where.len), 0);
    assert_int_equal(send(fd, request, sizeof request - 1, 0), sizeof request - 1);
    clients[n_clients++] = fd;
    return fd;
}

static void hang_up(int fd)
{
    for (unsigned i = 0; i < n_clients; i++)
        if (clients[i] == fd) {
            clients[i] = clients[--n_clients];
            close(fd);
            return;
        }
}

/* Returns the bytes that the client receives within a short time: "", "reset", or the beginning of a
 * response. */
static mk_str receive(int fd)
{
    static char buffer[1000];
    for (int i = 0; i < 20; i++) {
        assert_int_equal(mk_loop_run_once(&t.loop, 2), 0);
        ssize_t n = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
        if (n > 0)
            return mk_str_of(buffer, (size_t)n);
        if (n == 0 || errno == ECONNRESET)
            return MK_STR("reset");
    }
    return MK_STR("");
}

static void expect(int fd, const char *beginning)
{
    mk_str received = receive(fd);
    if (*beginning ? !mk_str_starts(received, mk_str_from_c(beginning)) : received.len > 0)
        fail_msg("\"%.*s\", not \"%s\"", MK_STR_ARG(received), beginning);
}

static void acceptor_connections_are_served(void **state)
{
    (void)state;
    accept_all();
    int a = call(), b = call();
    expect(a, "HTTP/1.1 200 OK\r\n");
    expect(b, "HTTP/1.1 200 OK\r\n");
    assert_int_equal(t.manager.n_conns, 2);
    assert_int_equal(t.counters.accepted, 2);
    assert_int_equal(t.counters.dropped, 0);
}

static void acceptor_stopped_accepts_nothing(void **state)
{
    (void)state;
    accept_all();
    int a = call();
    expect(a, "HTTP/1.1 200 OK\r\n");
    mk_acceptor_stop(&acceptor);
    int b = call();
    expect(b, "");
    mk_acceptor_resume(&acceptor);
    expect(b, "");
    accept_all(); /* the new acceptor finds this connection in the queue of the listener */
    expect(b, "HTTP/1.1 200 OK\r\n");
}

static enum mk_verdict on_accept(struct mk_conn *c, void *data)
{
    (void)c;
    return *(enum mk_verdict *)data;
}

static void acceptor_runs_accept_hooks_first(void **state)
{
    (void)state;
    enum mk_verdict verdict = MK_ERROR;
    const struct mk_accept_hook hook = {.name = "sample", .on_accept = on_accept, .data = &verdict};
    t.manager.accept_hooks = &hook;
    t.manager.n_accept_hooks = 1;
    accept_all();
    expect(call(), "reset");
    assert_int_equal(t.counters.dropped, 1);
    assert_int_equal(t.manager.n_conns, 0);
    verdict = MK_NEXT;
    expect(call(), "HTTP/1.1 200 OK\r\n");
    assert_int_equal(t.counters.dropped, 1);
}

/* ---- Over the limit ---- */

static void acceptor_over_limit_resist_waits(void **state)
{
    (void)state;
    t.limits.connections_max = 2;
    t.limits.overcapacity = MK_OVERCAPACITY_RESIST;
    accept_all();
    int a = call(), b = call(), c = call();
    expect(a, "HTTP/1.1 200 OK\r\n");
    expect(b, "HTTP/1.1 200 OK\r\n");
    expect(c, "");
    assert_true(acceptor.paused);
    assert_int_equal(t.manager.n_conns, 2);
    hang_up(a);
    expect(c, "HTTP/1.1 200 OK\r\n");
    assert_int_equal(t.counters.dropped, 0);
}

static void acceptor_over_limit_drop_resets(void **state)
{
    (void)state;
    t.limits.connections_max = 1;
    t.limits.overcapacity = MK_OVERCAPACITY_DROP;
    accept_all();
    int a = call(), b = call();
    expect(a, "HTTP/1.1 200 OK\r\n");
    expect(b, "reset");
    assert_int_equal(t.counters.dropped, 1);
    hang_up(a);
    int c = call();
    expect(c, "HTTP/1.1 200 OK\r\n");
}

static void acceptor_over_limit_toobusy_sends_503(void **state)
{
    (void)state;
    t.limits.connections_max = 1;
    t.limits.overcapacity = MK_OVERCAPACITY_TOOBUSY;
    accept_all();
    int a = call(), b = call();
    expect(a, "HTTP/1.1 200 OK\r\n");
    mk_str received = receive(b);
    assert_true(mk_str_starts(received, MK_STR("HTTP/1.1 503 Service Unavailable\r\n")));
    assert_contains(received, "Retry-After: ");
    assert_true(mk_str_ends(received, MK_STR("\r\n\r\n")));
    expect(b, "reset");
    assert_int_equal(t.counters.dropped, 1);
}

static void acceptor_limits_connections_of_one_client(void **state)
{
    (void)state;
    t.limits.overcapacity = MK_OVERCAPACITY_RESIST;
    mk_client_limits_fini(&t.manager.peers);
    mk_client_limits_init(&t.manager.peers, 2);
    accept_all();
    int a = call(), b = call(), c = call();
    expect(a, "HTTP/1.1 200 OK\r\n");
    expect(b, "HTTP/1.1 200 OK\r\n");
    expect(c, "HTTP/1.1 429 Too Many Requests\r\n");
    hang_up(b);
    conn_run_server(&t);
    int d = call();
    expect(d, "HTTP/1.1 200 OK\r\n");
}

/* ---- Out of descriptors ---- */

static struct rlimit before;

/* Uses up all descriptors. */
static void use_up_descriptors(void)
{
    struct rlimit none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    int next = open("/dev/null", O_RDONLY); /* not a copy of standard input, which may be closed */
    close(next);
    none.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
}

static void acceptor_without_descriptors_waits(void **state)
{
    (void)state;
    t.limits.overcapacity = MK_OVERCAPACITY_RESIST;
    accept_all();
    int a = call();
    use_up_descriptors();
    expect(a, "");
    assert_true(acceptor.paused);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    conn_run_for(&t, 150); /* the acceptor retries by itself */
    expect(a, "HTTP/1.1 200 OK\r\n");
}

static void acceptor_without_descriptors_sends_503(void **state)
{
    (void)state;
    t.limits.overcapacity = MK_OVERCAPACITY_TOOBUSY;
    accept_all();
    int a = call();
    use_up_descriptors();
    expect(a, "HTTP/1.1 503 Service Unavailable\r\n");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(acceptor.reserve_fd >= 0); /* the acceptor has reopened it */
    int b = call();
    expect(b, "HTTP/1.1 200 OK\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(acceptor_connections_are_served, setup, teardown),
        fixture_test(acceptor_stopped_accepts_nothing, setup, teardown),
        fixture_test(acceptor_runs_accept_hooks_first, setup, teardown),
        fixture_test(acceptor_over_limit_resist_waits, setup, teardown),
        fixture_test(acceptor_over_limit_drop_resets, setup, teardown),
        fixture_test(acceptor_over_limit_toobusy_sends_503, setup, teardown),
        fixture_test(acceptor_limits_connections_of_one_client, setup, teardown),
        fixture_test(acceptor_without_descriptors_waits, setup, teardown),
        fixture_test(acceptor_without_descriptors_sends_503, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
