/* SPDX-License-Identifier: Apache-2.0 */
/* Tunnels: another protocol, such as WebSocket, in the place of a request's response. */
#ifndef MONKEY_TUNNEL_H
#define MONKEY_TUNNEL_H

#include <monkey/request.h>
#include <monkey/response.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The protocol that the client wants to speak in the place of HTTP, as it named it: "websocket" (always in
 * small letters), "example/2". Absent if it wants none. Over HTTP/1.1 that is the first protocol of the
 * Upgrade field of a GET without content (RFC 9110, section 7.8), over HTTP/2 an extended CONNECT (RFC 8441):
 * routes, hooks and handlers see that as a GET, too, and only mk_request_method_text() tells the two apart.
 */
MK_API mk_str mk_request_tunnel(const struct mk_request *r);

/**
 * The same, and also the protocol of a request with content, or with another method than GET: some programs begin
 * sessions by POST, such as `docker exec`. Read the content to its end before mk_response_open_tunnel(). Websocket
 * always begins with a GET without content.
 */
MK_API mk_str mk_request_upgrade(const struct mk_request *r);

/**
 * The server's end of a tunnel: bytes in both directions, each of which ends separately. Read input with
 * mk_request_read(): 0 means that the client has ended its direction, -EAGAIN that on_input() will be called
 * when more arrives. Unread input stays with the client, and output is pulled only when there is room for it:
 * neither direction needs memory, and neither waits for the other.
 */
struct mk_tunnel_ops {
    /**
     * What we send. `source.pull` is called when there is room for it, and the client has sent something,
     * there had been no room, or mk_request_resume() was called. 0 ends our direction, and also the tunnel if
     * no more input is wanted (see on_input); a negative errno value other than -EAGAIN aborts the tunnel.
     */
    struct mk_body_source_ops source;
    /**
     * May be NULL: then `source.pull` reads what the client sends. Called when there is input to read,
     * including its end, or after mk_request_resume(), whether or not there is room for output; before
     * `source.pull`. False: further input is discarded.
     */
    bool (*on_input)(void *ctx);
};

/**
 * Accepts the tunnel that the client asked for (mk_request_tunnel()): return MK_DONE afterwards. The client
 * gets 101 (over HTTP/2 200) with the fields that were added; everything that follows belongs to the tunnel.
 * Status and content can no longer be changed (-EALREADY), filters do not apply. The server will call
 * ops->source.close(ctx), even when this fails.
 *
 * Neither `HandlerTimeout` nor `MinRate` nor `MaxBodySize` hold in a tunnel, but `TunnelTimeout` does: for so
 * long no byte may move in either direction.
 *
 * The content of the request, if it has any, must have been read: mk_request_read() has answered 0.
 *
 * 0; -EINVAL if the client has asked for none, or its content was not read to the end; -EPROTO if it asked for websocket in a way that is not valid
 * (RFC 6455, section 4.2.1): status and fields say so, answer MK_ERROR; -EALREADY; -ENOMEM.
 *
 *     if (!mk_str_eq(mk_request_tunnel(request), MK_STR("websocket")))
 *         return MK_NEXT;
 *     return mk_response_open_tunnel(request, response, &ops, ctx) ? MK_ERROR : MK_DONE;
 */
MK_API int mk_response_open_tunnel(struct mk_request *request, struct mk_response *r,
                                   const struct mk_tunnel_ops *ops, void *ctx);

/**
 * Ends the tunnel of this request soon, whether or not there is room for output: the client sees a reset
 * (over HTTP/2, of its stream), and source.close(ctx) is called. For clients that take nothing any more.
 */
MK_API void mk_request_abort_tunnel(struct mk_request *r);

#ifdef __cplusplus
}
#endif

#endif
