/* SPDX-License-Identifier: Apache-2.0 */
/* Tunnels: another protocol, such as WebSocket, in place of an HTTP response. */
#ifndef MONKEY_TUNNEL_H
#define MONKEY_TUNNEL_H

#include <monkey/request.h>
#include <monkey/response.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The protocol to which the client wants to upgrade, as received: "websocket" (always in lower case),
 * "example/2". Absent if there is none. In HTTP/1.1, it is the first protocol in the Upgrade header of a GET
 * without a body (RFC 9110, section 7.8); in HTTP/2, it comes from an extended CONNECT (RFC 8441). Routes,
 * hooks and handlers also see the latter as a GET; only mk_request_method_text() distinguishes the two.
 */
MK_API mk_str mk_request_tunnel(const struct mk_request *request);

/**
 * Like mk_request_tunnel(), but also returns the protocol of a request with a body or a method other than
 * GET: some programs, such as `docker exec`, start sessions with POST. Read the body to its end before you
 * call mk_response_open_tunnel(). WebSocket always starts with a GET without a body.
 */
MK_API mk_str mk_request_upgrade(const struct mk_request *request);

/**
 * The server's end of a tunnel: two byte streams, each of which ends separately. Read input with
 * mk_request_read(): 0 means that the client has ended its direction, and -EAGAIN that on_input() will be
 * called when more arrives. Unread input stays with the client, and output is pulled only when the client can
 * take it. The server therefore buffers neither direction, and neither blocks the other.
 */
struct mk_tunnel_ops {
    /**
     * Produces output. `source.read` is called when there is space for output, and either the client has sent
     * something, or there was no space before, or mk_request_resume() was called. A return value of 0 ends
     * the output, and also the tunnel if no more input is wanted (see on_input). A negative errno value other
     * than -EAGAIN aborts the tunnel.
     */
    struct mk_body_source_ops source;
    /**
     * Called before `source.read`, whether or not there is space for output. If `has_input` is true, there
     * may be input to read, or the client has ended its direction. Otherwise there is nothing to read: the
     * client can take output again, or mk_request_resume() was called. Returning false discards further
     * input. May be NULL: `source.read` then reads the input.
     */
    bool (*on_input)(void *ctx, bool has_input);
    uint64_t reserved[2]; /**< must be zero */
};

/**
 * Accepts the tunnel that the client requested (mk_request_tunnel()); return MK_DONE afterwards. The client
 * receives 101 (200 over HTTP/2) with the headers that were added; all further bytes belong to the tunnel.
 * Status and body can no longer change (-EALREADY), and filters do not apply. The server calls
 * ops->source.close(ctx), even if this function fails.
 *
 * `HandlerTimeout`, `MinRate` and `MaxBodySize` do not apply in a tunnel. `TunnelTimeout` does: it limits how
 * long the tunnel may be idle in both directions.
 *
 * The request body, if any, must have been read until mk_request_read() returned 0.
 *
 * Returns 0; -EINVAL if the client requested no tunnel, or the request body was not read to its end; -EPROTO
 * if the WebSocket handshake is invalid (RFC 6455, section 4.2.1); -EALREADY; or -ENOMEM. On -EPROTO, status
 * and headers are already set: return MK_ERROR from the handler.
 *
 *     if (!mk_str_eq(mk_request_tunnel(request), MK_STR("websocket")))
 *         return MK_NEXT;
 *     return mk_response_open_tunnel(request, response, &ops, ctx) ? MK_ERROR : MK_DONE;
 */
MK_API int mk_response_open_tunnel(struct mk_request *request, struct mk_response *response,
                                   const struct mk_tunnel_ops *ops, void *ctx);

/**
 * Schedules an abort of the tunnel of this request, even if there is no space for output: the client then
 * receives a reset (of the stream in HTTP/2), and source.close(ctx) is called. Use it for clients that no
 * longer read.
 */
MK_API void mk_request_abort_tunnel(struct mk_request *request);

#ifdef __cplusplus
}
#endif

#endif
