/* SPDX-License-Identifier: Apache-2.0 */
/* If an allocation fails, the socket is rejected or closed, exactly once, and everything is freed. */
#include "unit/oom.h"
#include "unit/websocket/echo_owner.h"

static const struct mk_websocket_options options = {.ops = &owner_ops,
                                                    .subprotocols = "a",
                                                    .compress_min = 1,
                                                    .flags =
                                                        MK_WEBSOCKET_COMPRESS | MK_WEBSOCKET_KEEP_CONTEXT};
static char sizes[3][8192];

static void exchange_messages(void)
{
    struct mk_buf in = mk_buf_fixed(sizes[0], sizeof sizes[0]);
    struct mk_websocket_message *m =
        mk_websocket_message_new(MK_WEBSOCKET_TEXT, MK_STR("news news news news"));
    add_frame(&in, MK_WS_FIN | MK_WS_TEXT, MK_STR("hello hello hello hello hello hello"));
    add_frame(&in, MK_WS_FIN | MK_WS_COMPRESSED | MK_WS_TEXT, mk_str_of("\xf2\x48\xcd\xc9\xc9\x07\x00", 7));
    add_frame(&in, MK_WS_TEXT, MK_STR("in "));
    add_frame(&in, MK_WS_FIN | MK_WS_PING, MK_STR("?"));
    add_frame(&in, MK_WS_FIN, MK_STR("pieces"));
    fixture.request.in = mk_buf_str(&in);
    if (m) {
        (void)mk_websocket_send_message(owner.socket, m);
        (void)mk_websocket_send_message(owner.socket, m); /* one message is already queued */
    }
    mk_websocket_message_free(m);
    while (fixture.request.arrived < in.len && !fixture.is_over)
        ws_fixture_deliver(5);
    if (!fixture.is_over)
        (void)mk_websocket_close(owner.socket, 1000, MK_STR("enough"));
    ws_fixture_run();
    ws_fixture_advance(6000);
    assert_true(fixture.is_over);
}

static bool play(void)
{
    ws_fixture_setup();
    owner_init();
    fixture.out = mk_buf_fixed(sizes[1], sizeof sizes[1]);
    owner.received = mk_buf_fixed(sizes[2], sizeof sizes[2]);
    ws_fixture_add_field(MK_STR("Sec-WebSocket-Protocol"), MK_STR("a"));
    ws_fixture_add_field(MK_STR("Sec-WebSocket-Extensions"), MK_STR("permessage-deflate"));
    bool started = mk_ws_socket_worker_init(&fixture.ws, &fixture.worker);
    int e = started ? owner_open(&options) : -ENOMEM;
    if (!e)
        exchange_messages();
    else
        assert_int_equal(e, -ENOMEM);
    ws_fixture_close();
    if (started)
        mk_ws_socket_worker_fini(&fixture.ws);
    ws_fixture_end();
    assert_int_equal(owner.n_closes, e ? 0 : 1);
    assert_true(oom.n_failed || owner.n_messages == 3);
    return oom.n_failed == 0; /* without a compressor, messages are sent uncompressed */
}

static void ws_oom_socket_fails_cleanly(void **state)
{
    (void)state;
    oom_at_each_allocation(play);
}

/* A broadcast to thousands of sockets allocates nothing for each recipient. */
static void ws_oom_broadcast_allocates_nothing(void **state)
{
    static const struct mk_websocket_options plain = {.ops = &owner_ops};
    (void)state;
    ws_fixture_setup();
    owner_init();
    fixture.out = mk_buf_fixed(sizes[1], sizeof sizes[1]);
    assert_true(mk_ws_socket_worker_init(&fixture.ws, &fixture.worker));
    assert_int_equal(owner_open(&plain), 0);
    struct mk_websocket_message *m = mk_websocket_message_new(MK_WEBSOCKET_TEXT, MK_STR("news"));
    for (int i = 0; i < 2; i++) {
        oom_at_next_allocation();
        assert_int_equal(mk_websocket_send_message(owner.socket, m), 0);
        ws_fixture_run();
        assert_int_equal(oom.n_allocs, 0);
    }
    oom.fail_at = 0;
    mk_websocket_message_free(m);
    ws_fixture_close();
    mk_ws_socket_worker_fini(&fixture.ws);
    ws_fixture_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ws_oom_socket_fails_cleanly),
                                       cmocka_unit_test(ws_oom_broadcast_allocates_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
