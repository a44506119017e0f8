/* SPDX-License-Identifier: Apache-2.0 */
/* A WebSocket owner that echoes messages and records them. Include it once, after fixture.h. */
#ifndef MK_UNIT_WEBSOCKET_ECHO_OWNER_H
#define MK_UNIT_WEBSOCKET_ECHO_OWNER_H

#include "unit/websocket/fixture.h"

static struct {
    struct mk_websocket *socket;
    struct mk_buf received; /* messages, each preceded by its type and followed by a newline */
    unsigned n_messages, n_sizes, n_closes;
    unsigned code;
    char reason[MK_WEBSOCKET_REASON_MAX + 1];
    bool is_silent;
} owner;

static void on_message(void *ctx, struct mk_websocket *s, enum mk_websocket_kind kind, mk_str data)
{
    assert_ptr_equal(ctx, &owner);
    assert_ptr_equal(s, owner.socket);
    assert_int_equal(owner.n_closes, 0);
    owner.n_messages++;
    mk_buf_add_char(&owner.received, kind == MK_WEBSOCKET_TEXT ? 't' : 'b');
    mk_buf_add(&owner.received, data);
    mk_buf_add_char(&owner.received, '\n');
    if (!owner.is_silent)
        assert_true(mk_websocket_send(s, kind, data) != -EAGAIN);
}

static void on_room(void *ctx, struct mk_websocket *s)
{
    assert_ptr_equal(ctx, &owner);
    assert_ptr_equal(s, owner.socket);
    assert_int_equal(owner.n_closes, 0);
    owner.n_sizes++;
}

static void on_close(void *ctx, struct mk_websocket *s, unsigned code, mk_str reason)
{
    assert_ptr_equal(ctx, &owner);
    assert_ptr_equal(s, owner.socket);
    assert_int_equal(mk_websocket_send(s, MK_WEBSOCKET_TEXT, MK_STR("x")), -ESHUTDOWN);
    assert_int_equal(mk_websocket_close(s, 1000, MK_STR_NULL), -EALREADY);
    mk_websocket_abort(s);
    owner.n_closes++;
    owner.code = code;
    assert_true(reason.len <= MK_WEBSOCKET_REASON_MAX);
    memcpy(owner.reason, reason.p, reason.len);
    owner.reason[reason.len] = 0;
}

static const struct mk_websocket_ops owner_ops = {
    .on_message = on_message, .on_writable = on_room, .on_close = on_close};

static inline void owner_init(void)
{
    memset(&owner, 0, sizeof owner);
    owner.received = mk_buf_growing(FIXTURE_OUT_MAX);
}

static inline void owner_fini(void)
{
    mk_buf_free(&owner.received);
}

static inline int owner_open(const struct mk_websocket_options *o)
{
    return mk_ws_socket_open(&fixture.ws, &fixture.request, &fixture.response, o, &owner, &owner.socket);
}

#endif
