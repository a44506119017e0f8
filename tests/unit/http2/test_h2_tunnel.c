/* SPDX-License-Identifier: Apache-2.0 */
/* Tunnels over HTTP/2 (RFC 8441): each one is a stream among others. */
#include "unit/http2/h2_conn_case.h"

static void setup_tunnels(void)
{
    setup();
    h.conn.limits.request.tunnel_ms = 10000;
    h2_conn_open(&h);
}

static struct h2_stream *request_tunnel(uint32_t id, const char *target, const char *more)
{
    char fields[500];
    snprintf(fields, sizeof fields,
             ":method: CONNECT\n:protocol: x\n:scheme: http\n:authority: a\n:path: %s\n%s", target, more);
    return h2_send_headers(&h.client, &h.say, id, 0, fields);
}

static struct h2_stream *open_tunnel(uint32_t id, const char *target)
{
    struct h2_stream *s = request_tunnel(id, target, "");
    h2_conn_run(&h);
    assert_int_equal(s->status, 200);
    h2_conn_expect_open(&h, id);
    return s;
}

static void expect_received(struct h2_stream *s, const char *text)
{
    h2_conn_run(&h);
    assert_str(mk_buf_str(&s->content), text);
    mk_buf_clear(&s->content);
}

static void h2_tunnel_echoes_bytes(void **state)
{
    (void)state;
    struct h2_stream *s = request_tunnel(1, "/tunnel", "");
    h2_conn_data(&h, 1, "behind the head", false);
    expect_received(s, "behind the head");
    for (int i = 0; i < 10; i++) {
        h2_conn_data(&h, 1, "a", false);
        expect_received(s, "a");
    }
    h2_conn_get(&h, 3, "/early");
    h2_conn_data(&h, 1, "last", true);
    expect_received(s, "last");
    h2_conn_expect(&h, 3, 200, "early\n");
    assert_true(s->ended);
    assert_false(s->reset);
    h2_conn_expect_records(&h, 2, 200, MK_OUTCOME_OK);
    assert_int_equal(h.conn.content_sent[1], 15 + 10 + 4);
    h2_conn_expect_idle(&h);
}

static void h2_tunnel_server_may_send_first(void **state)
{
    (void)state;
    struct h2_stream *s = open_tunnel(1, "/tunnel?n=4");
    expect_received(s, "tttt");
    h2_conn_data(&h, 1, "x", false);
    expect_received(s, "x");
}

/* A call that only announces space for output must not announce input. */
static void h2_tunnel_output_alone_is_no_input(void **state)
{
    (void)state;
    memset(handlers_input_calls, 0, sizeof handlers_input_calls);
    struct h2_stream *s = open_tunnel(1, "/tunnel?n=3000000&stops=1000");
    h2_send_window_update(&h.client, &h.say, 0, 5000000);
    h2_send_window_update(&h.client, &h.say, 1, 5000000);
    h2_conn_run(&h);
    assert_true(s->ended);
    assert_true(handlers_input_calls[false] > 0);
    assert_int_equal(handlers_input_calls[true], 0);
    /* this input is noticed although the handler has read nothing before */
    h2_conn_data(&h, 1, "more", false);
    h2_conn_run(&h);
    assert_int_equal(handlers_input_calls[true], 1);
    h2_conn_data(&h, 1, "", true);
    h2_conn_run(&h);
    h2_conn_expect_records(&h, 1, 200, MK_OUTCOME_OK);
}

static void h2_tunnel_server_may_half_close(void **state)
{
    (void)state;
    struct h2_stream *s = open_tunnel(3, "/tunnel"), *half = request_tunnel(5, "/tunnel?n=3&stops=1000", "");
    expect_received(half, "ttt");
    assert_true(half->ended && !half->reset);
    h2_conn_data(&h, 5, "more", false);
    h2_conn_data(&h, 3, "x", false);
    expect_received(s, "x");
    assert_int_equal(h.conn.n_records, 0);
    h2_conn_data(&h, 5, "", true);
    h2_conn_run(&h);
    h2_conn_expect_records(&h, 1, 200, MK_OUTCOME_OK);
    assert_false(half->reset);
}

static void h2_tunnel_unread_input_resets_stream(void **state)
{
    (void)state;
    struct h2_stream *s = request_tunnel(1, "/tunnel?n=3&stops=5", "");
    expect_received(s, "ttt");
    assert_int_equal(h.conn.n_records, 0);
    h2_conn_data(&h, 1, "12345", false);
    h2_conn_run(&h);
    h2_conn_expect_reset(&h, 1, MK_H2_NO_ERROR);
    h2_conn_expect_records(&h, 1, 200, MK_OUTCOME_OK);
    h2_conn_data(&h, 1, "and more", false);
    h2_conn_run(&h);
    h2_conn_expect_idle(&h);
}

static void h2_tunnel_directions_are_independent(void **state)
{
    (void)state;
    struct h2_stream *s = open_tunnel(1, "/tunnel?n=3000000&stops=1000000000");
    assert_int_equal(s->content.len, MK_H2_WINDOW);
    assert_true(h2_conn_upload(&h, 1, 2000000, false));
    h2_send_window_update(&h.client, &h.say, 0, 5000000);
    h2_send_window_update(&h.client, &h.say, 1, 5000000);
    h2_conn_run(&h);
    assert_int_equal(s->content.len, 3000000);
    assert_true(s->ended);
    h2_conn_data(&h, 1, "", true);
    h2_conn_run(&h);
    h2_conn_expect_records(&h, 1, 200, MK_OUTCOME_OK);
}

/* While the output buffer of the tunnel is full, the server does not read from the client, whose window
 * closes. */
static void h2_tunnel_client_not_reading_is_not_read(void **state)
{
    (void)state;
    struct h2_stream *s = open_tunnel(1, "/tunnel");
    assert_false(h2_conn_upload(&h, 1, 3000000, false));
    assert_int_equal(s->content.len, MK_H2_WINDOW);
    size_t sent = (size_t)(MK_H2_WINDOW + H2_CONN_UNREAD) - (size_t)h.client.upload;
    assert_true(sent < 1000000);
    h2_send_window_update(&h.client, &h.say, 0, 5000000);
    h2_send_window_update(&h.client, &h.say, 1, 5000000);
    h2_conn_run(&h);
    assert_true(h2_conn_upload(&h, 1, 2000000, true));
    assert_true(s->ended && s->content.len > 2000000);
    h2_conn_expect_idle(&h);
}

static void h2_tunnel_failure_resets_stream(void **state)
{
    (void)state;
    open_tunnel(1, "/tunnel?fails=6");
    h2_conn_data(&h, 1, "123", false);
    h2_conn_run(&h);
    h2_conn_expect_open(&h, 1);
    h2_conn_data(&h, 1, "456", false);
    h2_conn_run(&h);
    h2_conn_expect_reset(&h, 1, MK_H2_INTERNAL_ERROR);
    h2_conn_expect_records(&h, 1, 200, MK_OUTCOME_FAILED);
    /* this tunnel fails before it has sent any byte */
    struct h2_stream *s = request_tunnel(3, "/tunnel?fails=0", "");
    h2_conn_run(&h);
    assert_true(s->reset || (s->ended && s->status == 500));
    h2_conn_run(&h);
    if (!s->reset)
        h2_send_reset(&h.client, &h.say, 3, MK_H2_CANCEL);
    h2_conn_run(&h);
    h2_conn_expect_idle(&h);
    assert_int_equal(h.conn.n_records, 2);
    assert_int_equal(h.conn.outcomes[1], MK_OUTCOME_FAILED);
}

static void h2_tunnel_client_reset_closes_tunnel(void **state)
{
    (void)state;
    open_tunnel(1, "/tunnel?n=1000000");
    open_tunnel(3, "/tunnel");
    h2_send_reset(&h.client, &h.say, 1, MK_H2_CANCEL);
    h2_conn_run(&h);
    h2_conn_expect_records(&h, 1, 200, MK_OUTCOME_CLIENT_ABORTED);
    shutdown(h.conn.fd, SHUT_WR);
    h2_conn_run(&h);
    h2_conn_expect_reset(&h, 3, MK_H2_CANCEL);
    assert_true(h.conn.ended);
    h2_conn_expect_records(&h, 2, 200, MK_OUTCOME_CLIENT_ABORTED);
}

static void h2_tunnel_priority_updates_lose_no_data(void **state)
{
    (void)state;
    struct h2_stream *s = open_tunnel(1, "/tunnel");
    for (int i = 0; i < 8; i++) {
        h2_conn_data(&h, 1, "heard", false);
        mk_h2_frame_emit_head(&h.say, 7, MK_H2_PRIORITY_UPDATE, 0, 0);
        mk_h2_frame_emit_u32(&h.say, 1);
        mk_buf_add(&h.say, i % 2 ? MK_STR("u=1") : MK_STR("u=6"));
        expect_received(s, "heard");
    }
    request_tunnel(3, "/tunnel?stops=1000", "");
    h2_conn_data(&h, 3, "heard", false);
    mk_h2_frame_emit_head(&h.say, 7, MK_H2_PRIORITY_UPDATE, 0, 0);
    mk_h2_frame_emit_u32(&h.say, 3);
    mk_buf_add(&h.say, MK_STR("u=1"));
    h2_conn_run(&h);
    assert_null(mk_h2_stream_find(h.conn.conn->h2, 3) ? mk_h2_stream_find(h.conn.conn->h2, 3)->first : NULL);
}

static void h2_tunnel_has_no_body_limit(void **state)
{
    (void)state;
    h.conn.limits.request.content_max = 10;
    struct h2_stream *s = open_tunnel(1, "/tunnel");
    for (int i = 0; i < 10; i++) {
        h2_conn_data(&h, 1, "0123456789", false);
        expect_received(s, "0123456789");
    }
}

static void h2_tunnel_location_has_own_timeout(void **state)
{
    (void)state;
    struct mk_location_path path = {.regex = NULL};
    assert_true(mk_pattern_set(&path.pattern, MK_STR("/tunnel")));
    const struct mk_location location = {.paths = &path, .n_paths = 1, .limits = {.tunnel_ms = 60}};
    h.conn.site.host.locations = &location;
    h.conn.site.host.n_locations = 1;
    uint64_t began = mk_clock_ms();
    open_tunnel(1, "/tunnel");
    for (int i = 0; i < 600 && h.conn.n_records == 0; i++)
        h2_conn_run_for(&h, 5);
    assert_true(mk_clock_ms() - began >= 60);
    h2_conn_expect_reset(&h, 1, MK_H2_CANCEL);
    h2_conn_expect_records(&h, 1, 200, MK_OUTCOME_TIMEOUT);
}

/* Only a handler that supports tunnels may accept the request. */
static void h2_tunnel_needs_supporting_handler(void **state)
{
    (void)state;
    request_tunnel(1, "/early", "");
    request_tunnel(3, "/nothing", "");
    h2_send_headers(&h.client, &h.say, 5, 0, ":method: CONNECT\n:authority: a:80\n");
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 501, NULL);
    h2_conn_expect(&h, 3, 404, NULL);
    assert_true(h2_find(&h.client, 5)->status >= 400);
    for (uint32_t id = 1; id <= 5; id += 2)
        h2_conn_data(&h, id, "", true);
    h2_conn_run(&h);
    h2_conn_expect_idle(&h);
    assert_int_equal(h.conn.n_records, 3);
}

/* The upgrade is rejected even if the request could be served like any other. */
static void h2_tunnel_with_end_stream_is_rejected(void **state)
{
    (void)state;
    const char *const targets[] = {"/tunnel", "/early"};
    for (uint32_t i = 0; i < MK_LEN(targets); i++) {
        char fields[200];
        snprintf(fields, sizeof fields,
                 ":method: CONNECT\n:protocol: x\n:scheme: http\n:authority: a\n:path: %s\n", targets[i]);
        h2_send_headers(&h.client, &h.say, 2 * i + 1, MK_H2_END_STREAM, fields);
        h2_conn_run(&h);
        h2_conn_expect(&h, 2 * i + 1, 400, NULL);
    }
    h2_conn_expect_idle(&h);
}

/* A tunnel does not keep a draining worker alive forever. */
static void h2_tunnel_is_closed_when_worker_drains(void **state)
{
    (void)state;
    struct h2_stream *s = open_tunnel(1, "/tunnel");
    h.conn.manager.draining = true;
    h.conn.conn->ops->on_drain(h.conn.conn);
    h2_conn_run(&h);
    mk_h2_frame_emit_ping(&h.say, true, mk_str_of(h.client.ping, 8));
    h2_conn_data(&h, 1, "still", false);
    expect_received(s, "still");
    h2_conn_data(&h, 1, "", true);
    h2_conn_run(&h);
    assert_true(h.conn.ended);
    h2_conn_expect_records(&h, 1, 200, MK_OUTCOME_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(h2_tunnel_echoes_bytes, setup_tunnels),
        fixture_test(h2_tunnel_server_may_send_first, setup_tunnels),
        fixture_test(h2_tunnel_output_alone_is_no_input, setup_tunnels),
        fixture_test(h2_tunnel_server_may_half_close, setup_tunnels),
        fixture_test(h2_tunnel_unread_input_resets_stream, setup_tunnels),
        fixture_test(h2_tunnel_directions_are_independent, setup_tunnels),
        fixture_test(h2_tunnel_client_not_reading_is_not_read, setup_tunnels),
        fixture_test(h2_tunnel_failure_resets_stream, setup_tunnels),
        fixture_test(h2_tunnel_client_reset_closes_tunnel, setup_tunnels),
        fixture_test(h2_tunnel_priority_updates_lose_no_data, setup_tunnels),
        fixture_test(h2_tunnel_has_no_body_limit, setup_tunnels),
        fixture_test(h2_tunnel_location_has_own_timeout, setup_tunnels),
        fixture_test(h2_tunnel_needs_supporting_handler, setup_tunnels),
        fixture_test(h2_tunnel_with_end_stream_is_rejected, setup_tunnels),
        fixture_test(h2_tunnel_is_closed_when_worker_drains, setup_tunnels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
