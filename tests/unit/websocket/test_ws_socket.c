/* SPDX-License-Identifier: Apache-2.0 */
#include "websocket/ws_socket.h"

#include "unit/child.h"
#include "unit/state_machine.h"
#include "unit/websocket/echo_owner.h"

static struct mk_buf in;

static const struct mk_websocket_options plain = {.ops = &owner_ops, .message_max = 100, .queue_max = 1000};
static const struct mk_websocket_options packed = {
    .ops = &owner_ops, .flags = MK_WEBSOCKET_COMPRESS, .compress_min = 1};

static void setup(void)
{
    ws_fixture_init();
    owner_init();
    in = mk_buf_growing(1 << 20);
}

static void teardown(void)
{
    bool was_opened = owner.socket != NULL;
    ws_fixture_fini();
    assert_int_equal(owner.n_closes, was_opened ? 1 : 0);
    owner_fini();
    mk_buf_free(&in);
}

static void open_it(const struct mk_websocket_options *o)
{
    assert_int_equal(owner_open(o), 0);
    assert_int_equal(fixture.response.status, 101);
}

static void frame(unsigned first, mk_str payload)
{
    add_frame(&in, first, payload);
}

/* Delivers all collected frames, in pieces of this size. */
static void arrive(size_t size)
{
    fixture.request.in = mk_buf_str(&in);
    while (fixture.request.arrived < in.len)
        ws_fixture_deliver(mk_min(size, in.len - fixture.request.arrived));
}

static void expect_out(mk_str out)
{
    if (!mk_str_eq(mk_buf_str(&fixture.out), out))
        fail_msg("%zu bytes, not %zu", fixture.out.len, out.len);
    mk_buf_clear(&fixture.out);
}

#define OUT(bytes) expect_out(mk_str_of(bytes, sizeof bytes - 1))

/* ---- Messages ---- */

static void ws_messages_are_echoed(void **state)
{
    (void)state;
    open_it(&plain);
    for (size_t size = 1; size < 40; size += 3) {
        mk_buf_clear(&owner.received);
        frame(MK_WS_FIN | MK_WS_TEXT, MK_STR("hello"));
        frame(MK_WS_BINARY, MK_STR("in "));
        frame(MK_WS_FIN | MK_WS_PING, MK_STR("?"));
        frame(MK_WS_CONTINUATION, MK_STR(""));
        frame(MK_WS_FIN, MK_STR("parts"));
        arrive(size);
        assert_str(mk_buf_str(&owner.received), "thello\nbin parts\n");
        OUT("\x81\5hello\x8a\1?\x82\10in parts");
        assert_null(owner.socket->inflow);
    }
}

static void ws_idle_socket_holds_no_buffer(void **state)
{
    (void)state;
    open_it(&plain);
    frame(MK_WS_FIN | MK_WS_TEXT, MK_STR("hello"));
    fixture.request.in = mk_buf_str(&in);
    ws_fixture_deliver(7);
    assert_non_null(owner.socket->inflow);
    ws_fixture_deliver(100);
    assert_null(owner.socket->inflow);
    assert_null(owner.socket->queue.first);
    assert_true(sizeof *owner.socket <= 256);
}

static void ws_parts_form_one_message(void **state)
{
    (void)state;
    open_it(&plain);
    assert_int_equal(mk_websocket_send_part(owner.socket, MK_WEBSOCKET_TEXT, MK_STR("a"), false), 0);
    assert_int_equal(mk_websocket_send(owner.socket, MK_WEBSOCKET_TEXT, MK_STR("x")), -EBUSY);
    assert_int_equal(mk_websocket_ping(owner.socket, MK_STR("!")), 0);
    assert_int_equal(mk_websocket_send_part(owner.socket, MK_WEBSOCKET_TEXT, MK_STR("b"), true), 0);
    assert_int_equal(mk_websocket_send(owner.socket, MK_WEBSOCKET_TEXT, MK_STR("c")), 0);
    assert_true(fixture.request.is_resumed);
    ws_fixture_run();
    OUT("\1\1a\x89\1!\x80\1b\x81\1c");
}

static void ws_compressed_messages_are_echoed(void **state)
{
    (void)state;
    ws_fixture_add_field(MK_STR("Sec-WebSocket-Extensions"), MK_STR("permessage-deflate"));
    open_it(&packed);
    if (!mk_ws_deflate_is_supported())
        skip();
    frame(MK_WS_FIN | MK_WS_COMPRESSED | MK_WS_TEXT, mk_str_of("\xf2\x48\xcd\xc9\xc9\x07\x00", 7));
    arrive(3);
    assert_str(mk_buf_str(&owner.received), "tHello\n");
    OUT("\x81\5Hello"); /* compression would make it longer */
    assert_true(mk_timer_is_set(&fixture.ws.rest));
    ws_fixture_advance(1000);
    assert_false(mk_timer_is_set(&fixture.ws.rest)); /* the compressors have freed their memory */
}

/* Each message inflates to a megabyte, so other connections run in between. */
static void ws_inflation_per_iteration_is_limited(void **state)
{
    (void)state;
    enum { MESSAGES = 6 };
    static char zeros[1 << 20];
    struct mk_ws_deflate *c = mk_ws_deflate_new(15);
    struct mk_buf code = mk_buf_growing(1 << 20);
    if (!mk_ws_deflate_is_supported())
        skip();
    assert_int_equal(mk_ws_deflate_compress(c, mk_str_of(zeros, sizeof zeros), false, &code), 0);
    ws_fixture_add_field(MK_STR("Sec-WebSocket-Extensions"), MK_STR("permessage-deflate"));
    owner.is_silent = true;
    open_it(&packed);
    for (unsigned i = 0; i < MESSAGES; i++)
        frame(MK_WS_FIN | MK_WS_COMPRESSED | MK_WS_BINARY, mk_buf_str(&code));
    fixture.request.in = mk_buf_str(&in);
    fixture.request.arrived = in.len;
    ws_fixture_run_tunnel();
    assert_int_equal(owner.n_messages, 2);
    ws_fixture_run_tunnel();
    assert_int_equal(owner.n_messages, 4);
    ws_fixture_run();
    assert_int_equal(owner.n_messages, MESSAGES);
    mk_buf_free(&code);
    mk_ws_deflate_free(c);
}

static void ws_drain_closes_open_sockets(void **state)
{
    (void)state;
    open_it(&plain);
    mk_ws_socket_worker_drain(&fixture.ws);
    mk_ws_socket_worker_drain(&fixture.ws); /* the socket sends no second close frame */
    ws_fixture_run();
    OUT("\x88\2\x03\xe9");
    frame(MK_WS_FIN | MK_WS_CLOSE, MK_STR("\x03\xe9"));
    arrive(100);
    assert_int_equal(owner.code, MK_WEBSOCKET_GOING_AWAY);
}

/* A broadcast to thousands of sockets must not try to read from each of them. */
static void ws_send_reads_no_input(void **state)
{
    (void)state;
    open_it(&plain);
    fixture.request.n_reads = 0;
    assert_int_equal(mk_websocket_send(owner.socket, MK_WEBSOCKET_TEXT, MK_STR("news")), 0);
    ws_fixture_run();
    OUT("\x81\4news");
    assert_int_equal(fixture.request.n_reads, 0);
    frame(MK_WS_FIN | MK_WS_TEXT, MK_STR("a"));
    arrive(100);
    OUT("\x81\1a");
    assert_true(fixture.request.n_reads > 0);
}

static void ws_shared_message_is_sent_to_many(void **state)
{
    (void)state;
    struct mk_websocket_message *m = mk_websocket_message_new(MK_WEBSOCKET_BINARY, MK_STR("news"));
    open_it(&plain);
    assert_int_equal(mk_websocket_send_message(owner.socket, m), 0);
    assert_int_equal(mk_websocket_send_message(owner.socket, m), 0);
    mk_websocket_message_free(m);
    fixture.read_max = 5;
    ws_fixture_run();
    OUT("\x82\4news\x82\4news");
    mk_websocket_message_free(NULL);
}

/* The queue allocates no memory for a single shared message. When another message follows, it must allocate
 * memory, even if a part of the first message has been sent. */
static void ws_shared_messages_keep_order(void **state)
{
    (void)state;
    struct mk_websocket_message *m = mk_websocket_message_new(MK_WEBSOCKET_BINARY, MK_STR("news"));
    open_it(&plain);
    for (int begun = 0; begun < 2; begun++) {
        assert_int_equal(mk_websocket_send_message(owner.socket, m), 0);
        fixture.read_max = fixture.write_max = begun ? 3 : 0;
        ws_fixture_run();
        assert_int_equal(mk_websocket_send(owner.socket, MK_WEBSOCKET_TEXT, MK_STR("own")), 0);
        assert_int_equal(mk_websocket_send_message(owner.socket, m), 0);
        fixture.read_max = fixture.write_max = 1000;
        ws_fixture_run();
        OUT("\x82\4news\x81\3own\x82\4news");
        assert_int_equal(owner.socket->queue.weight, 0);
    }
    /* the message is still queued when the socket ends */
    assert_int_equal(mk_websocket_send_message(owner.socket, m), 0);
    mk_websocket_message_free(m);
}

/* ---- Back-pressure ---- */

static void ws_full_queue_rejects_and_notifies(void **state)
{
    char text[100];
    int n = 0;
    (void)state;
    memset(text, 'x', sizeof text);
    open_it(&plain);
    fixture.write_max = 0;
    while (mk_websocket_send(owner.socket, MK_WEBSOCKET_TEXT, mk_str_of(text, sizeof text)) == 0)
        n++;
    assert_in_range(n, 7, 10);
    assert_true(owner.socket->queue.weight >= 1000);
    ws_fixture_run();
    assert_int_equal(owner.n_sizes, 0);
    fixture.write_max = SIZE_MAX;
    ws_fixture_run();
    assert_int_equal(owner.n_sizes, 1);
    assert_int_equal(owner.socket->queue.weight, 0);
}

static void ws_client_not_reading_is_not_read(void **state)
{
    (void)state;
    open_it(&plain);
    fixture.write_max = 0;
    for (int i = 0; i < 100; i++)
        frame(MK_WS_FIN | MK_WS_TEXT, MK_STR("01234567890123456789"));
    arrive(10000);
    assert_in_range(owner.n_messages, 10, 50);
    fixture.write_max = SIZE_MAX;
    ws_fixture_run();
    assert_int_equal(owner.n_messages, 100);
    assert_int_equal(fixture.out.len, 2200);
}

static void ws_state_machine_has_these_transitions(void **state)
{
    (void)state;
    expect_state_machine(&mk_ws_machine, "handshake: open, over\n"
                                         "open: closing, ending, broken, over\n"
                                         "closing: ending, broken, over\n"
                                         "ending: broken, over\n"
                                         "broken: over\n"
                                         "over\n");
}

static void ws_closed_is_not_paused(void **state)
{
    (void)state;
    struct mk_websocket s = {.is_paused = true};
    mk_state_init(&s.state, &mk_ws_machine, MK_WS_OPEN);
    assert_false(mk_ws_set_state(&s, MK_WS_OPEN));
    assert_true(s.is_paused);
    assert_true(mk_ws_set_state(&s, MK_WS_CLOSING));
    assert_false(s.is_paused);
    assert_false(mk_ws_set_state(&s, MK_WS_CLOSING));
    assert_int_equal(s.state.current, MK_WS_CLOSING);
    for (unsigned to = MK_WS_CLOSING; to < MK_WS_STATES; to++) {
        mk_state_init(&s.state, &mk_ws_machine, MK_WS_OPEN);
        s.is_paused = true;
        assert_true(mk_ws_set_state(&s, (enum mk_ws_state)to));
        assert_false(s.is_paused);
    }
}

static void end_while_paused(void *ctx)
{
    struct mk_websocket *s = ctx;
    s->is_paused = true;
    mk_state_move(&s->state, &mk_ws_machine, s, MK_WS_ENDING);
}

static void ws_only_open_may_be_paused(void **state)
{
    (void)state;
    struct mk_websocket s = {0};
    mk_state_init(&s.state, &mk_ws_machine, MK_WS_OPEN);
    assert_aborts(end_while_paused, &s, "WebSocket in state \"ending\": only an open socket is paused");
}

static void ws_pause_stops_messages(void **state)
{
    (void)state;
    open_it(&plain);
    mk_websocket_pause(owner.socket);
    frame(MK_WS_FIN | MK_WS_TEXT, MK_STR("a"));
    arrive(100);
    assert_int_equal(owner.n_messages, 0);
    mk_websocket_resume(owner.socket);
    ws_fixture_run();
    assert_int_equal(owner.n_messages, 1);
    mk_websocket_pause(owner.socket);
    /* the close frame still arrives */
    assert_int_equal(mk_websocket_close(owner.socket, 1000, MK_STR("")), 0);
    frame(MK_WS_FIN | MK_WS_CLOSE, MK_STR(""));
    arrive(100);
    assert_true(fixture.is_over);
}

/* ---- Close ---- */

static void ws_client_close_is_answered(void **state)
{
    (void)state;
    open_it(&plain);
    frame(MK_WS_FIN | MK_WS_CLOSE, MK_STR("\x0f\xa0why"));
    frame(MK_WS_FIN | MK_WS_TEXT, MK_STR("ignored"));
    arrive(100);
    OUT("\x88\2\x0f\xa0");
    assert_true(fixture.is_over && owner.code == 4000);
    assert_string_equal(owner.reason, "why");
    assert_int_equal(owner.n_messages, 0);
}

static void ws_server_close_is_sent(void **state)
{
    (void)state;
    open_it(&plain);
    assert_int_equal(mk_websocket_close(owner.socket, 1004, MK_STR("")), -EINVAL);
    assert_int_equal(mk_websocket_close(owner.socket, 1000, MK_STR("\xff")), -EINVAL);
    assert_int_equal(mk_websocket_close(owner.socket, MK_WEBSOCKET_NO_CODE, MK_STR("x")), -EINVAL);
    assert_int_equal(mk_websocket_close(owner.socket, 4000, MK_STR("why")), 0);
    assert_int_equal(mk_websocket_close(owner.socket, 4000, MK_STR("why")), -EALREADY);
    assert_int_not_equal(owner.socket->state.current, MK_WS_OPEN);
    ws_fixture_run();
    OUT("\x88\5\x0f\xa0why");
    assert_false(fixture.is_over);
    frame(MK_WS_FIN | MK_WS_TEXT, MK_STR("dropped"));
    frame(MK_WS_FIN | MK_WS_PING, MK_STR("dropped"));
    frame(MK_WS_FIN | MK_WS_CLOSE, MK_STR("\x0f\xa0"));
    arrive(100);
    OUT("");
    assert_true(fixture.is_over && owner.code == 4000 && owner.n_messages == 0);
}

static void ws_close_handshake_times_out(void **state)
{
    (void)state;
    open_it(&plain);
    assert_int_equal(mk_websocket_close(owner.socket, 1000, MK_STR("")), 0);
    ws_fixture_run();
    ws_fixture_advance(4900);
    assert_false(fixture.is_over);
    ws_fixture_advance(500);
    assert_true(fixture.is_over && owner.code == MK_WEBSOCKET_ABNORMAL);
}

static void ws_abort_closes_at_once(void **state)
{
    (void)state;
    open_it(&plain);
    assert_int_equal(mk_websocket_send(owner.socket, MK_WEBSOCKET_TEXT, MK_STR("lost")), 0);
    mk_websocket_abort(owner.socket);
    assert_int_equal(owner.n_closes, 0);
    assert_int_equal(owner.socket->queue.weight, 0);
    ws_fixture_run();
    assert_true(fixture.is_over && owner.code == MK_WEBSOCKET_ABNORMAL);
}

static void ws_protocol_error_closes(void **state)
{
    (void)state;
    open_it(&plain);
    frame(MK_WS_FIN | MK_WS_TEXT, MK_STR("fine"));
    frame(MK_WS_FIN | 5, MK_STR(""));
    frame(MK_WS_FIN | MK_WS_TEXT, MK_STR("ignored"));
    arrive(100);
    OUT("\x81\4fine\x88\2\x03\xea");
    assert_true(fixture.is_over && owner.code == 1002 && owner.n_messages == 1);
}

static void ws_client_eof_is_abnormal_close(void **state)
{
    (void)state;
    open_it(&plain);
    frame(MK_WS_FIN | MK_WS_TEXT, MK_STR("half"));
    fixture.request.in = mk_str_first(mk_buf_str(&in), in.len - 2);
    fixture.request.in_end = 0;
    ws_fixture_deliver(100);
    OUT("");
    assert_true(fixture.is_over && owner.code == MK_WEBSOCKET_ABNORMAL);
}

static void ws_client_reset_is_abnormal_close(void **state)
{
    (void)state;
    open_it(&plain);
    fixture.request.in_end = -ECONNRESET;
    ws_fixture_deliver(1);
    assert_true(fixture.is_over && owner.code == MK_WEBSOCKET_ABNORMAL);
}

/* ---- Timeouts ---- */

static void ws_silence_triggers_ping(void **state)
{
    (void)state;
    open_it(&plain);
    for (int i = 0; i < 5; i++) {
        ws_fixture_advance(30500);
        OUT("\x89\0");
        frame(MK_WS_FIN | MK_WS_PONG, MK_STR(""));
        arrive(100);
        ws_fixture_advance(30500);
        OUT("");
    }
    ws_fixture_advance(30500);
    OUT("\x89\0");
    ws_fixture_advance(30500);
    assert_true(fixture.is_over && owner.code == MK_WEBSOCKET_ABNORMAL);
}

static void ws_client_that_reads_is_alive(void **state)
{
    (void)state;
    open_it(&plain);
    fixture.read_max = 10;
    for (int i = 0; i < 8; i++)
        assert_int_equal(mk_websocket_send(owner.socket, MK_WEBSOCKET_TEXT, MK_STR("01234567890123456789")),
                         0);
    for (int i = 0; i < 8; i++) {
        fixture.write_max = 10;
        ws_fixture_run();
        ws_fixture_advance(30500);
        assert_false(fixture.is_over);
    }
    ws_fixture_advance(30500);
    ws_fixture_advance(30500);
    assert_true(fixture.is_over);
}

/* ---- Handshake ---- */

static void ws_handshake_rejects_invalid(void **state)
{
    (void)state;
    struct mk_websocket_options o = plain;
    fixture.request.tunnel = "example/2";
    assert_int_equal(owner_open(&o), -EINVAL);
    assert_int_equal(fixture.response.status, 426);
    fixture.request.tunnel = "websocket";
    o.origins = "https://a https://b";
    ws_fixture_add_field(MK_STR("origin"), MK_STR("https://example.org"));
    assert_int_equal(owner_open(&o), -EACCES);
    assert_int_equal(fixture.response.status, 403);
    o.ops = NULL;
    assert_int_equal(owner_open(&o), -EINVAL);
    assert_int_equal(fixture.response.status, 500);
    o = plain;
    fixture.response.refuses = -EPROTO;
    assert_int_equal(owner_open(&o), -EPROTO);
    assert_int_equal(fixture.response.status, 400);
}

static void ws_handshake_negotiates_subprotocol(void **state)
{
    (void)state;
    static struct mk_websocket_options o;
    o = plain;
    o.subprotocols = "a, b";
    o.origins = "same";
    ws_fixture_add_field(MK_STR("Sec-WebSocket-Protocol"), MK_STR("c"));
    ws_fixture_add_field(MK_STR("sec-websocket-protocol"), MK_STR("b, a"));
    ws_fixture_add_field(MK_STR("Origin"), MK_STR("https://example.org"));
    open_it(&o);
    assert_str(mk_websocket_subprotocol(owner.socket), "b");
    assert_str(fixture.response.fields[0].value, "b");
    assert_ptr_equal(mk_websocket_request(owner.socket), &fixture.request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(ws_messages_are_echoed, setup, teardown),
        fixture_test(ws_idle_socket_holds_no_buffer, setup, teardown),
        fixture_test(ws_parts_form_one_message, setup, teardown),
        fixture_test(ws_compressed_messages_are_echoed, setup, teardown),
        fixture_test(ws_inflation_per_iteration_is_limited, setup, teardown),
        fixture_test(ws_drain_closes_open_sockets, setup, teardown),
        fixture_test(ws_send_reads_no_input, setup, teardown),
        fixture_test(ws_shared_message_is_sent_to_many, setup, teardown),
        fixture_test(ws_shared_messages_keep_order, setup, teardown),
        fixture_test(ws_full_queue_rejects_and_notifies, setup, teardown),
        fixture_test(ws_client_not_reading_is_not_read, setup, teardown),
        cmocka_unit_test(ws_state_machine_has_these_transitions),
        cmocka_unit_test(ws_closed_is_not_paused),
        cmocka_unit_test(ws_only_open_may_be_paused),
        fixture_test(ws_pause_stops_messages, setup, teardown),
        fixture_test(ws_client_close_is_answered, setup, teardown),
        fixture_test(ws_server_close_is_sent, setup, teardown),
        fixture_test(ws_close_handshake_times_out, setup, teardown),
        fixture_test(ws_abort_closes_at_once, setup, teardown),
        fixture_test(ws_protocol_error_closes, setup, teardown),
        fixture_test(ws_client_eof_is_abnormal_close, setup, teardown),
        fixture_test(ws_client_reset_is_abnormal_close, setup, teardown),
        fixture_test(ws_silence_triggers_ping, setup, teardown),
        fixture_test(ws_client_that_reads_is_alive, setup, teardown),
        fixture_test(ws_handshake_rejects_invalid, setup, teardown),
        fixture_test(ws_handshake_negotiates_subprotocol, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
