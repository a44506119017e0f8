/* SPDX-License-Identifier: Apache-2.0 */
/* Another thread sends a message to a WebSocket, through a reference to its request. */
#include "lib/embed.h"

#include <monkey/request_ref.h>
#include <monkey/websocket.h>

static struct {
    struct mk_request_ref *ref;
    struct mk_websocket *socket; /* only for the worker; NULL: closed */
    atomic_int opened, closed, late_calls;
} chat;

static void on_close(void *ctx, struct mk_websocket *s, unsigned code, mk_str reason)
{
    (void)ctx, (void)s, (void)code, (void)reason;
    chat.socket = NULL;
    atomic_fetch_add(&chat.closed, 1);
}

static enum mk_verdict open_chat(struct mk_request *request, struct mk_response *response, void *data)
{
    static const struct mk_websocket_ops ops = {.on_close = on_close};
    static const struct mk_websocket_options options = {.ops = &ops};
    (void)data;
    if (mk_websocket_open(request, response, &options, NULL, &chat.socket))
        return MK_ERROR;
    chat.ref = mk_request_ref_new(mk_websocket_request(chat.socket));
    assert_non_null(chat.ref);
    atomic_fetch_add(&chat.opened, 1);
    return MK_DONE;
}

static void send_in_loop(struct mk_request *request, void *text)
{
    if (request && chat.socket)
        assert_int_equal(mk_websocket_send(chat.socket, MK_WEBSOCKET_TEXT, mk_str_from_c(text)), 0);
    else
        atomic_fetch_add(&chat.late_calls, 1);
}

static void receive_exactly(int fd, char *out, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t r = recv(fd, out + done, n - done, 0);
        assert_true(r > 0);
        done += (size_t)r;
    }
}

static int connect_websocket(unsigned port)
{
    static const char request[] =
        "GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    char head[1024] = "", *at = head;
    int fd = dial(port);
    assert_int_equal(send(fd, request, sizeof request - 1, MSG_NOSIGNAL), sizeof request - 1);
    while (!strstr(head, "\r\n\r\n") && at < head + sizeof head - 1)
        receive_exactly(fd, at++, 1);
    assert_holds(head, "101 ");
    return fd;
}

static void websocket_gets_message_of_another_thread(void **state)
{
    static char hello[] = "hello";
    char frame[7];
    unsigned port;
    struct mk_server *s = server_with("GET /chat", open_chat, NULL, &port);
    (void)state;
    if (mk_server_set(s, "PLUGINS", "Load", "websocket") || mk_server_start(s, 2)) {
        mk_server_free(s); /* this build has no WebSockets */
        skip();
    }
    int fd = connect_websocket(port);
    wait_until(&chat.opened, 1);
    assert_int_equal(mk_request_ref_resume(chat.ref, send_in_loop, hello), 0);
    receive_exactly(fd, frame, sizeof frame);
    assert_memory_equal(frame, "\x81\x05hello", sizeof frame);
    close(fd);
    wait_until(&chat.closed, 1);
    int e;
    for (int i = 0; (e = mk_request_ref_resume(chat.ref, send_in_loop, hello)) == 0; i++) {
        assert_true(i < PATIENCE_S * 1000); /* the request ends after its WebSocket */
        usleep(1000);
    }
    assert_int_equal(e, -ESTALE);
    mk_request_ref_free(chat.ref);
    mk_server_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(websocket_gets_message_of_another_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
