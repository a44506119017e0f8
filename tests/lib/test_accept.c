/* SPDX-License-Identifier: Apache-2.0 */
/* mk_server_set_accept_filter(): the filter accepts or rejects clients by their address, before HTTP. */
#include <monkey/addr.h>

#include "lib/embed.h"

#include <sys/un.h>

struct gate {
    atomic_bool is_open;
    atomic_int n_asked;
    char client[128];
};

static bool is_open(const struct mk_addr *client, void *ctx)
{
    struct gate *g = ctx;
    struct mk_buf text = mk_buf_fixed(g->client, sizeof g->client - 1);
    mk_addr_format(client, &text);
    g->client[text.len] = '\0';
    atomic_fetch_add(&g->n_asked, 1);
    return atomic_load(&g->is_open);
}

struct counted {
    atomic_int asked;
};

static bool accept_every_other(const struct mk_addr *client, void *ctx)
{
    struct counted *n = ctx;
    (void)client;
    return atomic_fetch_add(&n->asked, 1) % 2 == 0;
}

static void filter_decides_on_each_connection(void **state)
{
    (void)state;
    unsigned port;
    struct gate g = {.is_open = true};
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &port);
    assert_int_equal(mk_server_set_accept_filter(s, is_open, &g), 0);
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_holds(fetch(port, "GET", "/hello"), "\r\n\r\nhello");
    assert_int_equal(atomic_load(&g.n_asked), 1);
    assert_holds(g.client, "127.0.0.1");
    atomic_store(&g.is_open, false);
    assert_string_equal(fetch(port, "GET", "/hello"), ""); /* closed without a response */
    assert_int_equal(atomic_load(&g.n_asked), 2);
    atomic_store(&g.is_open, true);
    assert_holds(fetch(port, "GET", "/hello"), "\r\n\r\nhello");
    mk_server_free(s);
}

static void last_filter_is_used(void **state)
{
    (void)state;
    unsigned port;
    struct gate first = {0}, last = {.is_open = true};
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &port);
    assert_int_equal(mk_server_set_accept_filter(s, is_open, &first), 0);
    assert_int_equal(mk_server_set_accept_filter(s, is_open, &last), 0);
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_holds(fetch(port, "GET", "/hello"), "\r\n\r\nhello");
    assert_int_equal(atomic_load(&first.n_asked), 0);
    assert_int_equal(atomic_load(&last.n_asked), 1);
    assert_int_equal(mk_server_set_accept_filter(s, is_open, &first), -EBUSY);
    mk_server_free(s);
}

/* The security plugin replaces the proxy's address with the client's before the filter runs. */
static void filter_gets_the_client_of_the_proxy_protocol(void **state)
{
    /* One send() for all: the server resets a rejected connection as soon as it has read the header. */
    static const char request[] = "PROXY TCP4 192.0.2.7 127.0.0.1 4711 80\r\n"
                                  "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    (void)state;
    unsigned port;
    struct gate g = {.is_open = true};
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &port);
    assert_int_equal(mk_server_set(s, "PLUGINS", "Load", "security"), 0);
    assert_int_equal(mk_server_set(s, "SECURITY", "TrustedProxy", "127.0.0.1"), 0);
    assert_int_equal(mk_server_set(s, "SECURITY", "ProxyProtocol", "on"), 0);
    assert_int_equal(mk_server_set_accept_filter(s, is_open, &g), 0);
    assert_int_equal(mk_server_start(s, 1), 0);
    for (int is_allowed = 1; is_allowed >= 0; is_allowed--) {
        int fd = dial(port);
        atomic_store(&g.is_open, is_allowed);
        assert_int_equal(send(fd, request, sizeof request - 1, MSG_NOSIGNAL), sizeof request - 1);
        const char *answer = receive_all(fd);
        assert_true(is_allowed ? strstr(answer, "\r\n\r\nhello") != NULL : *answer == '\0');
        assert_holds(g.client, "192.0.2.7");
        assert_int_equal(atomic_load(&g.n_asked), 2 - is_allowed);
    }
    mk_server_free(s);
}

/* The filter is called exactly once for each connection, whichever thread accepts it, including connections
 * to listeners that were added later. */
static void filter_decides_in_several_threads(void **state)
{
    enum { THREADS = 4, CONNECTIONS = 64 };
    (void)state;
    unsigned port, later;
    struct counted n = {0};
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &port);
    assert_int_equal(mk_server_set_accept_filter(s, accept_every_other, &n), 0);
    assert_int_equal(mk_server_start(s, THREADS), 0);
    assert_int_equal(mk_server_listen(s, "127.0.0.1:0", &later), 0);
    int n_served = 0;
    for (int i = 0; i < CONNECTIONS; i++)
        n_served += *fetch(i % 4 < 2 ? port : later, "GET", "/hello") != '\0';
    assert_int_equal(n_served, CONNECTIONS / 2);
    assert_int_equal(atomic_load(&n.asked), CONNECTIONS);
    mk_server_free(s);
}

static void filter_gets_clients_of_unix_sockets(void **state)
{
    (void)state;
    char where[160];
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct gate g = {.is_open = true};
    struct mk_server *s = mk_server_new(NULL);
    (void)snprintf(a.sun_path, sizeof a.sun_path, "/tmp/monkey-accept-%d.sock", (int)getpid());
    (void)snprintf(where, sizeof where, "unix:%s", a.sun_path);
    assert_int_equal(mk_server_add_route(s, "GET /hello", respond_hello, NULL), 0);
    assert_int_equal(mk_server_set_accept_filter(s, is_open, &g), 0);
    assert_int_equal(mk_server_listen(s, where, NULL), 0);
    assert_int_equal(mk_server_start(s, 1), 0);
    for (int is_allowed = 1; is_allowed >= 0; is_allowed--) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        atomic_store(&g.is_open, is_allowed);
        assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
        (void)!send(fd, "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 51, MSG_NOSIGNAL);
        const char *answer = receive_all(fd);
        assert_true(is_allowed ? strstr(answer, "\r\n\r\nhello") != NULL : *answer == '\0');
        assert_string_equal(g.client, "unix:");
    }
    mk_server_free(s);
}

static void filter_is_required(void **state)
{
    (void)state;
    struct mk_server *s = mk_server_new(NULL);
    assert_int_equal(mk_server_set_accept_filter(s, NULL, NULL), -EINVAL);
    assert_holds(mk_server_error(s), "there is no function");
    mk_server_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filter_decides_on_each_connection),
        cmocka_unit_test(last_filter_is_used),
        cmocka_unit_test(filter_gets_the_client_of_the_proxy_protocol),
        cmocka_unit_test(filter_decides_in_several_threads),
        cmocka_unit_test(filter_gets_clients_of_unix_sockets),
        cmocka_unit_test(filter_is_required),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
