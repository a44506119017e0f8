/* SPDX-License-Identifier: Apache-2.0 */
/* WebSockets: messages in both directions, in straight lines or by callbacks. */
#ifndef DUDA_WEBSOCKET_H
#define DUDA_WEBSOCKET_H

#include <duda/service.h>
#include <monkey/websocket.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The server's end of a WebSocket. It exists from duda_websocket_open() until its client is gone: for a handler
 * at most until it returns, for callbacks until on_close() returns. */
struct duda_websocket;

/** What happens to a member of a room (see duda/topic.h) whose client reads too slowly. */
enum duda_slow {
    DUDA_SLOW_DISCONNECT, /**< it is closed with 1013, and may come again */
    DUDA_SLOW_DROP,       /**< it does not get the message */
};

/**
 * How the sockets of a route are to be; make it constant. What is 0 is the default; the members that are not
 * told of here are those of struct mk_websocket_options.
 */
struct duda_websocket_options {
    const char *subprotocols;
    /** Pages that may connect, such as "same https://example.org"; by default "same": those of this site
     * alone. Others get a 403. "*": all, so a cookie alone must not identify users. */
    const char *origins;
    size_t message_max, queue_max;
    uint32_t ping_ms;
    bool compress;
    enum duda_slow slow;
    /**
     * The callback form: a handler that has opened the socket returns, and from then on these are called, in
     * the loop: they must not wait. A socket without a handler costs no stack. on_close() is called once,
     * last. Without on_message the handler goes on with duda_websocket_receive().
     */
    void (*on_message)(struct duda_websocket *s, enum mk_websocket_kind kind, mk_str data, void *ctx);
    void (*on_close)(struct duda_websocket *s, unsigned code, void *ctx);
};

/**
 * Accepts the WebSocket that the client asks for. `options` may be NULL; `ctx` is for the callbacks. 0; or
 * what the handler returns, so that the client gets 426, 400 or 403: -EINVAL (it asks for none), -EPROTO,
 * -EACCES (the origin), -EALREADY, -ENOMEM. The route is one of GET.
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
MK_API int duda_websocket_open(struct duda_ctx *d, const struct duda_websocket_options *options, void *ctx,
                               struct duda_websocket **out) MK_API_MUST_USE;

/** A message of the client: it ends with a NUL, and lives until the next duda_websocket_receive(). */
struct duda_message {
    enum mk_websocket_kind kind;
    mk_str data;
};

/**
 * Waits for the next message. 1; 0: the socket was closed; -ECANCELED, -ETIMEDOUT (the deadline), -ENOMEM.
 * While the handler does not ask, the client has to wait. It gives back what was allocated with duda_alloc()
 * and its like since the last message: what lives longer is allocated before the first call.
 */
MK_API int duda_websocket_receive(struct duda_ctx *d, struct duda_websocket *s,
                                  struct duda_message *out) MK_API_MUST_USE;
/** Sends a message, and waits while too much waits to be sent. 0, -ECANCELED (it is closed), -ETIMEDOUT,
 * -ENOMEM. */
MK_API int duda_websocket_send(struct duda_ctx *d, struct duda_websocket *s, enum mk_websocket_kind kind,
                               mk_str data);
MK_API int duda_websocket_printf(struct duda_ctx *d, struct duda_websocket *s, const char *fmt, ...)
    MK_API_PRINTF(3, 4);

/** Sends a message without waiting, for callbacks: also -EAGAIN, when too much waits. */
MK_API int duda_websocket_try_send(struct duda_websocket *s, enum mk_websocket_kind kind, mk_str data);
/** Closes it with a code and a reason; a socket whose handler returns is closed with 1000. */
MK_API void duda_websocket_close(struct duda_websocket *s, unsigned code, const char *reason);
/** The endpoint of the server; NULL when it is over. */
MK_API struct mk_websocket *duda_websocket_raw(const struct duda_websocket *s);

#ifdef __cplusplus
}
#endif

#endif
