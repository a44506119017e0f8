/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "unit/fixtures.h"
#include "unit/headers.h"
#include "unit/test.h"
#include "web/dispatch.h"
#include "web/filter.h"

static struct mk_arena arena;
static struct mk_exchange x;
static struct mk_header_field buffer[8];
static unsigned n_closed;

static ssize_t pull(void *ctx, char *to, size_t cap)
{
    (void)ctx, (void)to, (void)cap;
    return -EAGAIN;
}

static void on_close(void *ctx)
{
    (void)ctx;
    n_closed++;
}

static const struct mk_tunnel_ops ops = {.source = {.read = pull, .close = on_close}};

static void setup(void)
{
    arena_setup(&arena);
    mk_response_init(&x.response, &arena);
    x.request = (struct mk_request){.arena = &arena, .version = 11, .target = &x.request.received};
    mk_headers_init(&x.request.fields, buffer);
    n_closed = 0;
}

static void teardown(void)
{
    mk_response_body_fini(&x.response.content);
}

static int open_tunnel(void)
{
    return mk_response_open_tunnel(&x.request, &x.response, &ops, NULL);
}

static void add_field(const char *name, const char *value)
{
    assert_true(headers_add(&x.request.fields, MK_LEN(buffer), mk_str_from_c(name), mk_str_from_c(value)));
}

static void request_websocket(unsigned version)
{
    x.request.version = version;
    x.request.tunnel = MK_STR("websocket");
    add_field("Sec-WebSocket-Version", "13");
    if (version < 20)
        add_field("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
}

static void tunnel_without_upgrade_is_rejected(void **state)
{
    (void)state;
    assert_null(mk_request_tunnel(&x.request).p);
    assert_int_equal(open_tunnel(), -EINVAL);
    assert_int_equal(n_closed, 1);
    assert_int_equal(x.response.status, 0);
    assert_int_equal(mk_request_length(&x.request), 0);
}

static void tunnel_open_seals_response(void **state)
{
    (void)state;
    x.request.tunnel = MK_STR("x");
    assert_int_equal(open_tunnel(), 0);
    assert_true(mk_response_body_is_tunnel(&x.response.content));
    assert_int_equal(mk_response_status(&x.response), 101);
    assert_int_equal(mk_response_length(&x.response), MK_LENGTH_UNKNOWN);
    assert_int_equal(mk_request_length(&x.request), -1);
    assert_false(mk_response_will_send_body(&x.request, &x.response));
    assert_int_equal(open_tunnel(), -EALREADY);
    assert_int_equal(n_closed, 1); /* the tunnel has closed the body source that it replaces */
    static const struct mk_filter_ops filter = {0};
    assert_int_equal(mk_response_set_status(&x.response, 200), -EALREADY);
    assert_int_equal(mk_response_set_body(&x.response, MK_STR("x")), -EALREADY);
    assert_int_equal(mk_response_set_body_nocopy(&x.response, MK_STR("x")), -EALREADY);
    assert_int_equal(mk_response_set_body_file(&x.response, -1, 0, 0), -EALREADY);
    assert_int_equal(mk_response_set_body_source(&x.response, &ops.source, NULL, 1), -EALREADY);
    assert_int_equal(mk_response_set_raw_source(&x.response, &ops.source, NULL), -EALREADY);
    assert_int_equal(mk_response_add_filter(&x.response, &filter, NULL, 1), -EINVAL);
    assert_int_equal(mk_response_add_header(&x.response, MK_STR("X"), MK_STR("y")), 0);
    assert_int_equal(mk_response_add_header(&x.response, MK_STR("Sec-WebSocket-Accept"), MK_STR("y")),
                     -EINVAL);
    n_closed = 0;
    mk_response_reset(&x.response);
    assert_int_equal(n_closed, 1);
    assert_false(mk_response_body_is_tunnel(&x.response.content));
}

static void tunnel_websocket_handshake_over_http1(void **state)
{
    (void)state;
    request_websocket(11);
    assert_int_equal(open_tunnel(), 0);
    assert_int_equal(x.response.status, 101);
    assert_str(mk_response_header(&x.response, MK_STR("Sec-WebSocket-Accept")),
               "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

static void tunnel_websocket_handshake_over_http2(void **state)
{
    (void)state;
    request_websocket(20);
    assert_int_equal(open_tunnel(), 0);
    assert_int_equal(x.response.status, 200);
    assert_null(mk_response_header(&x.response, MK_STR("Sec-WebSocket-Accept")).p);
}

static void tunnel_malformed_handshake_is_rejected(void **state)
{
    (void)state;
    x.request.tunnel = MK_STR("websocket");
    assert_int_equal(open_tunnel(), -EPROTO);
    assert_int_equal(x.response.status, 400);
    add_field("Sec-WebSocket-Version", "14");
    assert_int_equal(open_tunnel(), -EPROTO);
    assert_int_equal(x.response.status, 426);
    assert_str(mk_response_header(&x.response, MK_STR("Sec-WebSocket-Version")), "13");
    assert_int_equal(n_closed, 2);
    assert_false(mk_response_body_is_tunnel(&x.response.content));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(tunnel_without_upgrade_is_rejected, setup, teardown),
        fixture_test(tunnel_open_seals_response, setup, teardown),
        fixture_test(tunnel_websocket_handshake_over_http1, setup, teardown),
        fixture_test(tunnel_websocket_handshake_over_http2, setup, teardown),
        fixture_test(tunnel_malformed_handshake_is_rejected, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
