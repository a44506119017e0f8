/* SPDX-License-Identifier: Apache-2.0 */
/* WebSockets: messages in both directions, with sequential calls or callbacks. */
#ifndef DUDA_WEBSOCKET_H
#define DUDA_WEBSOCKET_H

#include <duda/service.h>
#include <monkey/websocket.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The server side of a WebSocket. It lives from duda_websocket_open() until the client has disconnected:
 * without callbacks, at most until the handler returns; with callbacks, until on_close() returns. */
struct duda_websocket;

/** Policy for a subscriber of a topic (see duda/topic.h) whose client reads too slowly. */
enum duda_slow_policy {
    DUDA_SLOW_DISCONNECT, /**< close the WebSocket with code 1013 (try again later) */
    DUDA_SLOW_DROP,       /**< drop the message */
};

/**
 * The WebSocket options of a route; define them as a constant. 0 selects the default. Members without a
 * description are those of struct mk_websocket_options.
 */
struct duda_websocket_options {
    const char *subprotocols;
    /** Allowed origins, such as "same https://example.org"; the default "same" allows only pages of the same
     * origin. Others get 403. "*" allows all, so a cookie alone must not authenticate users. */
    const char *origins;
    size_t message_max, queue_max;
    uint32_t ping_ms;
    bool compress;
    enum duda_slow_policy slow;
    /**
     * Callbacks: a handler that has opened the WebSocket returns, and the event loop then calls these
     * functions; they must not wait. A WebSocket without a handler needs no stack. on_close() is called once,
     * as the last callback. Without on_message the handler continues with duda_websocket_receive().
     */
    void (*on_message)(struct duda_websocket *socket, enum mk_websocket_kind kind, mk_str data, void *ctx);
    void (*on_close)(struct duda_websocket *socket, unsigned code, void *ctx);
};

/**
 * Accepts the client's WebSocket handshake. `options` may be NULL; `ctx` is passed to the callbacks. Returns
 * 0. Return any other result from the handler, so that the client gets 426, 400 or 403: -EINVAL (not a
 * WebSocket handshake), -EPROTO, -EACCES (the origin is not allowed), -EALREADY, -ENOMEM. The route must be a
 * GET route.
 *
 *     static int echo(struct duda_ctx *d)
 *     {
 *         struct duda_websocket *s;
 *         struct duda_message m;
 *         int e = duda_websocket_open(d, NULL, NULL, &s);
 *         while (!e && (e = duda_websocket_receive(d, s, &m)) > 0)
 *             e = duda_websocket_send(d, s, m.kind, m.data);
 *         return e;
 *     }
 */
MK_API duda_verdict duda_websocket_open_sized(struct duda_ctx *d,
                                              const struct duda_websocket_options *options,
                                              size_t options_size, void *ctx,
                                              struct duda_websocket **out) MK_API_MUST_USE;
static inline MK_API_MUST_USE duda_verdict duda_websocket_open(struct duda_ctx *d,
                                                               const struct duda_websocket_options *options,
                                                               void *ctx, struct duda_websocket **out)
{
    return duda_websocket_open_sized(d, options, sizeof *options, ctx, out);
}

/** A client message. The data is NUL-terminated and lives until the next duda_websocket_receive(). */
struct duda_message {
    enum mk_websocket_kind kind;
    mk_str data;
};

/**
 * Waits for the next message. Returns 1: *out is a message; 0: the WebSocket was closed; -ECANCELED,
 * -ETIMEDOUT (the deadline), -ENOMEM. Until the handler calls this function, flow control makes the client
 * wait. Each call frees everything allocated with duda_alloc() and similar functions since the last message;
 * allocate longer-lived data before the first call.
 */
MK_API int duda_websocket_receive_sized(struct duda_ctx *d, struct duda_websocket *socket,
                                        struct duda_message *out, size_t out_size) MK_API_MUST_USE;
static inline MK_API_MUST_USE int duda_websocket_receive(struct duda_ctx *d, struct duda_websocket *socket,
                                                         struct duda_message *out)
{
    return duda_websocket_receive_sized(d, socket, out, sizeof *out);
}
/**
 * Sends a message over the WebSocket; waits while the send queue is full. Returns 0, -ECANCELED (closed),
 * -ETIMEDOUT, -ENOMEM.
 *
 *     int e = duda_websocket_printf(d, socket, "{\"n\": %d}", 7);
 */
MK_API int duda_websocket_send(struct duda_ctx *d, struct duda_websocket *socket, enum mk_websocket_kind kind,
                               mk_str data);
MK_API int duda_websocket_printf(struct duda_ctx *d, struct duda_websocket *socket, const char *fmt, ...)
    MK_API_PRINTF(3, 4);

/**
 * Sends a message without waiting, for callbacks; also returns -EAGAIN if the send queue is full.
 *
 *     static void on_message(struct duda_websocket *socket, enum mk_websocket_kind kind, mk_str data, void *ctx)
 *     {
 *         if (duda_websocket_try_send(socket, kind, data) == -EAGAIN)
 *             duda_websocket_close(socket, 1013, MK_STR("too slow"));
 *     }
 *
 *     static const struct duda_websocket_options options = {.on_message = on_message};
 *
 *     static int echo(struct duda_ctx *d)
 *     {
 *         struct duda_websocket *socket;
 *         return duda_websocket_open(d, &options, NULL, &socket);
 *     }
 *
 *     DUDA_SERVICE(chat, DUDA_GET("/echo", echo));
 */
MK_API int duda_websocket_try_send(struct duda_websocket *socket, enum mk_websocket_kind kind, mk_str data);
/** Closes the WebSocket with a code and a reason. When the handler returns, an open WebSocket is closed with
 * 1000; with 1011 (internal error) if the handler returned an error, a status from 400, or an invalid value;
 * with 1001 (going away) if it returned -ECANCELED. */
MK_API void duda_websocket_close(struct duda_websocket *socket, unsigned code, mk_str reason);
/** The underlying WebSocket of the server; NULL once it has ended. */
MK_API struct mk_websocket *duda_websocket_raw(const struct duda_websocket *socket);

#ifdef __cplusplus
}
#endif

#endif
