/* SPDX-License-Identifier: Apache-2.0 */
/* A WebSocket owner that echoes messages and records them. Included once, after world.h. */
#ifndef MK_UNIT_WEBSOCKET_ACTOR_H
#define MK_UNIT_WEBSOCKET_ACTOR_H

#include "unit/websocket/world.h"

static struct {
    struct mk_websocket *socket;
    struct mk_buf heard; /* messages, each preceded by its type and followed by a newline */
    unsigned n_messages, n_rooms, n_closes;
    unsigned code;
    char reason[MK_WEBSOCKET_REASON_MAX + 1];
    bool is_silent;
} actor;

static void on_message(void *ctx, struct mk_websocket *s, enum mk_websocket_kind kind, mk_str data)
{
    assert_ptr_equal(ctx, &actor);
    assert_ptr_equal(s, actor.socket);
    assert_int_equal(actor.n_closes, 0);
    actor.n_messages++;
    mk_buf_add_char(&actor.heard, kind == MK_WEBSOCKET_TEXT ? 't' : 'b');
    mk_buf_add(&actor.heard, data);
    mk_buf_add_char(&actor.heard, '\n');
    if (!actor.is_silent)
        assert_true(mk_websocket_send(s, kind, data) != -EAGAIN);
}

static void on_room(void *ctx, struct mk_websocket *s)
{
    assert_ptr_equal(ctx, &actor);
    assert_ptr_equal(s, actor.socket);
    assert_int_equal(actor.n_closes, 0);
    actor.n_rooms++;
}

static void on_close(void *ctx, struct mk_websocket *s, unsigned code, mk_str reason)
{
    assert_ptr_equal(ctx, &actor);
    assert_ptr_equal(s, actor.socket);
    assert_int_equal(mk_websocket_send(s, MK_WEBSOCKET_TEXT, MK_STR("x")), -ESHUTDOWN);
    assert_int_equal(mk_websocket_close(s, 1000, MK_STR_NULL), -EALREADY);
    mk_websocket_abort(s);
    actor.n_closes++;
    actor.code = code;
    assert_true(reason.len <= MK_WEBSOCKET_REASON_MAX);
    memcpy(actor.reason, reason.p, reason.len);
    actor.reason[reason.len] = 0;
}

static const struct mk_websocket_ops actor_ops = {
    .on_message = on_message, .on_writable = on_room, .on_close = on_close};

static inline void actor_init(void)
{
    memset(&actor, 0, sizeof actor);
    actor.heard = mk_buf_growing(WORLD_OUT_MAX);
}

static inline void actor_fini(void)
{
    mk_buf_free(&actor.heard);
}

static inline int actor_open(const struct mk_websocket_options *o)
{
    return mk_ws_socket_open(&world.ws, &world.request, &world.response, o, &actor, &actor.socket);
}

#endif
