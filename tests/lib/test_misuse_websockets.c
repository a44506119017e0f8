/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers, WebSockets and event streams that misuse the library, and servers that stop while such
 * connections are open, in each of the three run modes: the program is notified of each end once. */
#include <monkey/request_ref.h>
#include <monkey/sse_stream.h>
#include <monkey/test_client.h>
#include <monkey/websocket.h>
#include <stdlib.h>

#include "lib/embed.h"

/* Runs in threads of the server, where cmocka cannot end a test. */
#define must(condition)                                                                                      \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                          \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

static struct mk_server *around;
static atomic_int n_open, n_closed, n_refused;

static void count_refusals(void *ctx, enum mk_log_level level, mk_str text)
{
    (void)ctx, (void)level;
    if (mk_str_starts(text, MK_STR("mk_server_free()")))
        atomic_fetch_add(&n_refused, 1);
}

/* Called from callbacks, even while the server is being freed: then debug builds return -EINVAL, because
 * they have unregistered it, and other builds -EDEADLK or -EBUSY. */
static void misuse_the_server(void)
{
    mk_server_free(around);
    must(mk_server_wait(around) < 0);
    must(mk_server_step(around) < 0);
    must(mk_server_add_route(around, "GET /x", respond_hello, NULL) < 0);
    must(!mk_test_client_open(around));
}

/* ---- A WebSocket ---- */

static void close_again(struct mk_websocket *s)
{
    must(mk_websocket_send(s, MK_WEBSOCKET_TEXT, MK_STR("x")) == -ESHUTDOWN);
    must(mk_websocket_send_part(s, MK_WEBSOCKET_TEXT, MK_STR("x"), true) == -ESHUTDOWN);
    must(mk_websocket_ping(s, MK_STR("x")) == -ESHUTDOWN);
    must(mk_websocket_close(s, 1000, MK_STR_NULL) == -EALREADY);
    mk_websocket_pause(s);
    mk_websocket_resume(s);
}

static void on_close(void *ctx, struct mk_websocket *s, unsigned code, mk_str reason)
{
    (void)ctx, (void)code, (void)reason;
    close_again(s);
    mk_websocket_abort(s);
    mk_websocket_abort(s);
    misuse_the_server();
    atomic_fetch_add(&n_closed, 1);
}

static void close_wrongly(struct mk_websocket *s)
{
    static const unsigned codes[] = {1, 999, 1004, 1006, 1015, 2999, 5000, UINT_MAX};
    char text[126];
    memset(text, 'a', sizeof text);
    for (size_t i = 0; i < MK_LEN(codes); i++)
        must(mk_websocket_close(s, codes[i], MK_STR_NULL) == -EINVAL);
    must(mk_websocket_close(s, 1000, mk_str_of(text, MK_WEBSOCKET_REASON_MAX + 1)) == -EINVAL);
    must(mk_websocket_ping(s, mk_str_of(text, sizeof text)) == -EINVAL);
}

/* Each message names a misuse. */
static void on_message(void *ctx, struct mk_websocket *s, enum mk_websocket_kind kind, mk_str data)
{
    (void)ctx, (void)kind;
    misuse_the_server();
    switch (data.len ? data.p[0] : '\0') {
    case 'w':
        close_wrongly(s);
        break;
    case 'c':
        must(mk_websocket_close(s, 1000, MK_STR("bye")) == 0);
        close_again(s);
        return;
    case 'd':
        mk_websocket_abort(s);
        mk_websocket_abort(s);
        close_again(s);
        return;
    case 'p':
        mk_websocket_pause(s);
        mk_websocket_pause(s);
        mk_websocket_resume(s);
        mk_websocket_resume(s);
        break;
    case 's':
        mk_server_stop(around, 0);
        break;
    case 'm':
        must(mk_websocket_send_part(s, MK_WEBSOCKET_TEXT, MK_STR("a"), false) == 0);
        must(mk_websocket_send(s, MK_WEBSOCKET_TEXT, MK_STR("b")) == -EBUSY);
        must(mk_websocket_send_part(s, MK_WEBSOCKET_TEXT, MK_STR_NULL, true) == 0);
        break;
    default:
        break;
    }
    (void)mk_websocket_send(s, MK_WEBSOCKET_TEXT, MK_STR("done"));
}

static enum mk_verdict open_socket(struct mk_request *request, struct mk_response *response, void *data)
{
    static const struct mk_websocket_ops ops = {.on_message = on_message, .on_close = on_close};
    static const struct mk_websocket_options options = {.ops = &ops}, no_ops = {.queue_max = 1};
    struct mk_websocket *s;
    (void)data;
    if (mk_str_eq(mk_request_path(request), MK_STR("/odd")))
        return mk_websocket_open(request, response, &no_ops, NULL, &s) == -EINVAL ? MK_ERROR : MK_DONE;
    if (mk_websocket_open(request, response, &options, NULL, &s))
        return MK_ERROR;
    atomic_fetch_add(&n_open, 1);
    must(mk_websocket_open(request, response, &options, NULL, &s) == -EALREADY);
    return MK_DONE;
}

/* ---- An event stream ---- */

static void on_over(void *ctx, struct mk_sse_stream *s)
{
    (void)ctx;
    must(mk_sse_stream_send_text(s, MK_STR("data: x\n\n")) == -ESHUTDOWN);
    mk_sse_stream_end(s);
    misuse_the_server();
    atomic_fetch_add(&n_closed, 1);
}

static enum mk_verdict open_events(struct mk_request *request, struct mk_response *response, void *data)
{
    static const struct mk_sse_stream_ops ops = {.on_close = on_over};
    static const struct mk_sse_stream_options options = {.ops = &ops};
    static const struct mk_sse_event event = {.data = MK_STR_INIT("one")},
                                     odd = {.name = MK_STR_INIT("a\nb")};
    struct mk_sse_stream *s;
    (void)data;
    if (mk_sse_stream_open(request, response, &options, NULL, &s))
        return MK_ERROR;
    atomic_fetch_add(&n_open, 1);
    if (mk_str_eq(mk_request_path(request), MK_STR("/again"))) { /* the first event stream has ended */
        must(mk_sse_stream_open(request, response, &options, NULL, &s) == 0);
        must(atomic_load(&n_closed) == 1);
    }
    must(mk_sse_stream_send(s, &odd) == -EINVAL);
    must(mk_sse_stream_send(s, &event) == 0);
    if (mk_str_eq(mk_request_path(request), MK_STR("/ended"))) {
        mk_sse_stream_end(s);
        mk_sse_stream_end(s);
        must(mk_sse_stream_send(s, &event) == -ESHUTDOWN);
    }
    return MK_DONE;
}

/* ---- Clients ---- */

static struct mk_server *set_up(unsigned *port)
{
    const struct mk_server_options options = {.size = sizeof options, .on_log = count_refusals};
    struct mk_server *s = around = mk_server_new(&options);
    atomic_store(&n_open, 0);
    atomic_store(&n_closed, 0);
    atomic_store(&n_refused, 0);
    assert_int_equal(mk_server_set(s, "PLUGINS", "Load", "websocket"), 0);
    assert_int_equal(mk_server_add_route(s, "GET /", respond_hello, NULL), 0);
    assert_int_equal(mk_server_add_route(s, "GET /socket", open_socket, NULL), 0);
    assert_int_equal(mk_server_add_route(s, "GET /odd", open_socket, NULL), 0);
    assert_int_equal(mk_server_add_route(s, "GET /events", open_events, NULL), 0);
    assert_int_equal(mk_server_add_route(s, "GET /ended", open_events, NULL), 0);
    assert_int_equal(mk_server_add_route(s, "GET /again", open_events, NULL), 0);
    assert_int_equal(mk_server_listen(s, "127.0.0.1:0", port), 0);
    return s;
}

static void upgrade_on(int fd, const char *path)
{
    char text[512];
    int len = snprintf(text, sizeof text,
                       "GET %s HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                       "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
                       path);
    assert_int_equal(send(fd, text, (size_t)len, MSG_NOSIGNAL), len);
}

/* A text frame of one letter, masked with zeros. */
static void send_letter(int fd, char letter)
{
    const char frame[] = {(char)0x81, (char)0x81, 0, 0, 0, 0, letter};
    assert_int_equal(send(fd, frame, sizeof frame, MSG_NOSIGNAL), sizeof frame);
}

/* Receives until these bytes arrive, or the end. */
static bool receive_until(int fd, const char *part)
{
    char buffer[4096];
    size_t len = 0;
    ssize_t n;
    while (len < sizeof buffer && (n = recv(fd, buffer + len, sizeof buffer - len, 0)) > 0) {
        len += (size_t)n;
        if (memmem(buffer, len, part, strlen(part)))
            return true;
    }
    return false;
}

static int connect_socket(unsigned port)
{
    int fd = dial(port);
    assert_true(fd >= 0);
    upgrade_on(fd, "/socket");
    assert_true(receive_until(fd, "\r\n\r\n"));
    return fd;
}

static int connect_events(unsigned port)
{
    int fd = dial(port);
    assert_true(fd >= 0);
    send_request_on(fd, "GET", "/events");
    assert_true(receive_until(fd, "data: one"));
    return fd;
}

/* ---- Misuse ---- */

static void websocket_misuse_is_refused(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = set_up(&port);
    assert_int_equal(mk_server_start(s, 2), 0);
    int fd = connect_socket(port);
    for (const char *each = "wpmwpm"; *each; each++) {
        send_letter(fd, *each);
        assert_true(receive_until(fd, "done"));
    }
    assert_int_equal(atomic_load(&n_closed), 0);
    send_letter(fd, 'd');
    wait_until(&n_closed, 1);
    assert_holds(receive_all(fd), "");
    fd = connect_socket(port);
    send_letter(fd, 'c');
    assert_true(receive_until(fd, "bye"));
    send_letter(fd, 'w'); /* the server does not deliver this message */
    close(fd);
    wait_until(&n_closed, 2);
    fd = dial(port);
    upgrade_on(fd, "/odd");
    assert_true(receive_until(fd, "HTTP/1.1 500 "));
    close(fd);
    assert_holds(fetch(port, "GET", "/socket"), "HTTP/1.1 426 ");
    assert_holds(fetch(port, "GET", "/ended"), "data: one");
    wait_until(&n_closed, 3);
    assert_holds(fetch(port, "GET", "/"), "hello");
    mk_server_free(s);
    assert_int_equal(atomic_load(&n_closed), 3);
    assert_true(atomic_load(&n_refused) > 0);
}

static void event_stream_opened_twice_is_refused(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = set_up(&port);
    assert_int_equal(mk_server_start(s, 1), 0);
    int fd = dial(port);
    send_request_on(fd, "GET", "/again");
    assert_true(receive_until(fd, "data: one"));
    assert_int_equal(atomic_load(&n_closed), 1);
    close(fd);
    wait_until(&n_closed, 2);
    mk_server_free(s);
}

static void count_advice(void *n, enum mk_log_level level, mk_str text)
{
    if (level == MK_LOG_ERROR && text.len && strstr(text.p, "\"PLUGINS\", \"Load\", \"websocket\""))
        atomic_fetch_add((atomic_int *)n, 1);
}

static enum mk_verdict open_without_plugin(struct mk_request *request, struct mk_response *response,
                                           void *data)
{
    static const struct mk_websocket_ops ops = {.on_message = on_message, .on_close = on_close};
    static const struct mk_websocket_options options = {.ops = &ops};
    static const struct mk_sse_stream_ops stream_ops = {.on_close = on_over};
    static const struct mk_sse_stream_options stream_options = {.ops = &stream_ops};
    struct mk_websocket *socket;
    struct mk_sse_stream *stream;
    (void)data;
    must(mk_websocket_open(request, response, &options, NULL, &socket) == -ENODEV);
    must(mk_sse_stream_open(request, response, &stream_options, NULL, &stream) == -ENODEV);
    return MK_ERROR;
}

static void program_that_forgets_the_plugin_is_told(void **state)
{
    (void)state;
    atomic_int n = 0;
    unsigned port;
    const struct mk_server_options options = {.size = sizeof options, .on_log = count_advice, .log_ctx = &n};
    struct mk_server *s = mk_server_new(&options);
    assert_int_equal(mk_server_add_route(s, "GET /", open_without_plugin, NULL), 0);
    assert_int_equal(mk_server_listen(s, "127.0.0.1:0", &port), 0);
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_holds(fetch(port, "GET", "/"), "HTTP/1.1 500 ");
    mk_server_free(s);
    assert_int_equal(atomic_load(&n), 2);
}

/* ---- Shutdown while connections are open ---- */

enum { EACH = 8 };

static void open_all(unsigned port, int *fds)
{
    for (int i = 0; i < EACH; i++) {
        fds[2 * i] = connect_socket(port);
        fds[2 * i + 1] = connect_events(port);
    }
    assert_int_equal(atomic_load(&n_open), 2 * EACH);
}

static void close_all(const int *fds)
{
    for (int i = 0; i < 2 * EACH; i++)
        assert_holds(receive_all(fds[i]), "");
}

static void server_in_threads_ends_with_open_connections(void **state)
{
    (void)state;
    for (int mode = 0; mode < 4; mode++) {
        unsigned port;
        int fds[2 * EACH];
        struct mk_server *s = set_up(&port);
        assert_int_equal(mk_server_start(s, 2), 0);
        open_all(port, fds);
        if (mode == 1)
            mk_server_stop(s, 20);
        else if (mode == 2)
            send_letter(fds[0], 's');
        else if (mode == 3)
            shutdown(fds[0], SHUT_WR);
        if (mode == 1 || mode == 2)
            assert_int_equal(mk_server_wait(s), 0);
        mk_server_free(s);
        assert_int_equal(atomic_load(&n_closed), 2 * EACH);
        close_all(fds);
    }
}

static void server_in_run_ends_with_open_connections(void **state)
{
    (void)state;
    unsigned port;
    int fds[2 * EACH];
    pthread_t thread;
    struct mk_server *s = set_up(&port);
    pthread_create(&thread, NULL, run_server, s);
    open_all(port, fds);
    send_letter(fds[0], 's');
    pthread_join(thread, NULL);
    mk_server_free(s);
    assert_int_equal(atomic_load(&n_closed), 2 * EACH);
    close_all(fds);
}

/* ---- In memory ---- */

static void receive_in_memory(struct mk_test_client *p, const char *part)
{
    for (int i = 0; i < 1000; i++) {
        mk_str bytes = mk_test_client_received(p);
        if (bytes.len && memmem(bytes.p, bytes.len, part, strlen(part)))
            return;
        assert_true(mk_test_client_step(p, 100) >= 0);
    }
    fail_msg("\"%s\" does not come", part);
}

static void server_freed_before_its_test_clients(void **state)
{
    (void)state;
    unsigned port;
    struct mk_test_client_response answer;
    struct mk_server *s = set_up(&port);
    struct mk_test_client *socket = mk_test_client_open(s), *events = mk_test_client_open(s);
    assert_int_equal(
        mk_test_client_send(socket, MK_STR("GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
                                           "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                                           "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")),
        0);
    assert_int_equal(mk_test_client_send(events, MK_STR("GET /events HTTP/1.1\r\nHost: a\r\n\r\n")), 0);
    receive_in_memory(socket, "101 ");
    receive_in_memory(events, "data: one");
    assert_int_equal(atomic_load(&n_open), 2);
    mk_server_free(s);
    assert_int_equal(atomic_load(&n_closed), 2);
    assert_int_equal(mk_test_client_request(socket, "GET", "/", NULL, 0, MK_STR_NULL, &answer), -ESHUTDOWN);
    assert_true(mk_test_client_send(events, MK_STR("x")) < 0);
    assert_true(mk_test_client_step(events, 0) <= 0);
    mk_test_client_close(socket);
    mk_test_client_close(events);
}

/* ---- Request references ---- */

enum { TICKETS = 16 };

static struct mk_request_ref *tickets[TICKETS];
static atomic_int n_places, n_tickets, n_brought, n_gone;

static void set_data(struct mk_request *request, void *ctx)
{
    (void)ctx;
    atomic_fetch_add(request ? &n_brought : &n_gone, 1);
}

static enum mk_verdict create_request_ref(struct mk_request *request, struct mk_response *response,
                                          void *data)
{
    static const char key;
    (void)response, (void)data;
    if (!mk_request_attached(request, &key)) {
        struct mk_request_ref *t = mk_request_ref_new(request);
        must(mk_request_attach(request, &key, t, NULL) == 0);
        tickets[atomic_fetch_add(&n_places, 1)] = t;
        atomic_fetch_add(&n_tickets, 1);
    }
    return MK_WAIT;
}

static void *resume_all(void *ctx)
{
    intptr_t n = 0;
    (void)ctx;
    for (int round = 0; round < 200; round++)
        for (int i = 0; i < TICKETS; i++)
            n += mk_request_ref_resume(tickets[i], set_data, NULL) == 0;
    return (void *)n;
}

/* Each call that mk_request_ref_resume() accepts runs exactly once, even if the server is freed meanwhile,
 * and no call uses a freed request. */
static void request_refs_outlive_their_server(void **state)
{
    (void)state;
    unsigned port;
    int fds[TICKETS];
    pthread_t thread;
    void *n_taken;
    struct mk_server *s = server_with("GET /", create_request_ref, NULL, &port);
    assert_int_equal(mk_server_start(s, 2), 0);
    for (int i = 0; i < TICKETS; i++) {
        fds[i] = dial(port);
        send_request_on(fds[i], "GET", "/");
    }
    wait_until(&n_tickets, TICKETS);
    pthread_create(&thread, NULL, resume_all, NULL);
    mk_server_free(s);
    pthread_join(thread, &n_taken);
    assert_int_equal(atomic_load(&n_brought) + atomic_load(&n_gone), (intptr_t)n_taken);
    for (int i = 0; i < TICKETS; i++) {
        assert_true(mk_request_ref_is_gone(tickets[i]));
        assert_int_equal(mk_request_ref_resume(tickets[i], set_data, NULL), -ESTALE);
        mk_request_ref_free(tickets[i]);
        close(fds[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(websocket_misuse_is_refused),
        cmocka_unit_test(event_stream_opened_twice_is_refused),
        cmocka_unit_test(program_that_forgets_the_plugin_is_told),
        cmocka_unit_test(server_in_threads_ends_with_open_connections),
        cmocka_unit_test(server_in_run_ends_with_open_connections),
        cmocka_unit_test(server_freed_before_its_test_clients),
        cmocka_unit_test(request_refs_outlive_their_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
