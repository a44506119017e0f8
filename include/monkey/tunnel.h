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
 * Our end of a tunnel: bytes in both directions, each of which ends by itself. What the client sends is read
 * with mk_request_read(), as it comes: 0 says that the client will send no more, -EAGAIN that on_input() will
 * be called when there is something. What is not read stays with the client, what it has no room for is not
 * asked for: so neither direction needs memory, and neither waits for the other.
 */
struct mk_tunnel_ops {
    /**
     * What we send. `source.pull` is called when there is room for it, and the client has sent something,
     * there had been no room, or mk_request_resume() was called. 0 ends our direction, and where nobody wants
     * to hear more of the client (see on_input) the tunnel; a negative errno value other than -EAGAIN breaks
     * the tunnel off.
     */
    struct mk_source_ops source;
    /**
     * May be NULL: then `source.pull` reads what the client sends. Called when there is something to read,
     * its end included, or mk_request_resume() was called, whether there is room for what we send or not;
     * before `source.pull`. False: whatever else the client sends is thrown away.
     */
    bool (*on_input)(void *ctx);
};

/**
 * Accepts the tunnel that the client asked for (mk_request_tunnel()): answer MK_DONE then. The client is told
 * 101 (over HTTP/2 200) with the fields that were added, everything that follows is the tunnel's. Status and
 * content can't be changed any more (-EALREADY), filters do not apply. From here on ops->source.close(ctx)
 * will be called, also when this fails.
 *
 * Neither `HandlerTimeout` nor `MinRate` nor `MaxBodySize` hold in a tunnel, but `TunnelTimeout` does: for so
 * long no byte may move in either direction.
 *
 * 0; -EINVAL if the client has asked for none; -EPROTO if it asked for websocket in a way that is not valid
 * (RFC 6455, section 4.2.1): status and fields say so, answer MK_REFUSE; -EALREADY; -ENOMEM.
 *
 *     if (!mk_str_eq(mk_request_tunnel(request), MK_STR("websocket")))
 *         return MK_NEXT;
 *     return mk_response_open_tunnel(request, response, &ops, ctx) ? MK_REFUSE : MK_DONE;
 */
MK_API int mk_response_open_tunnel(struct mk_request *request, struct mk_response *r,
                                   const struct mk_tunnel_ops *ops, void *ctx);

#ifdef __cplusplus
}
#endif

#endif
