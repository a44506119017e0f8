/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "http/upgrade.h"
#include "web/exchange.h"
#include "web/request_type.h"
#include "web/response.h"

enum { ACCEPT_LEN = 28 };

static int reject_tunnel(struct mk_response *r, unsigned status, int e)
{
    r->status = status;
    return e;
}

/* Validates the handshake and, for HTTP/1, adds Sec-WebSocket-Accept. Returns 0, or an error after setting an
 * error status. */
static int accept_websocket_handshake(const struct mk_request *request, struct mk_response *r)
{
    bool with_key = request->version < 20;
    int status = mk_upgrade_check_websocket(&request->fields, with_key);
    if (status == 426 && !mk_response_add_header_unchecked(r, MK_STR("Sec-WebSocket-Version"), MK_STR("13")))
        return reject_tunnel(r, 503, -ENOMEM);
    if (status)
        return reject_tunnel(r, (unsigned)status, -EPROTO);
    if (!with_key)
        return 0;
    char buf[ACCEPT_LEN + 4];
    struct mk_buf accept = mk_buf_fixed(buf, sizeof buf);
    mk_upgrade_websocket_accept_key(mk_headers_get(&request->fields, MK_HEADER_SEC_WEBSOCKET_KEY), &accept);
    mk_str copy = mk_arena_copy(r->arena, mk_buf_str(&accept));
    if (!copy.p || !mk_response_add_header_unchecked(r, MK_STR("Sec-WebSocket-Accept"), copy))
        return reject_tunnel(r, 503, -ENOMEM);
    return 0;
}

int mk_response_open_tunnel(struct mk_request *request, struct mk_response *r,
                            const struct mk_tunnel_ops *ops, void *ctx)
{
    bool has_content = request->length && !mk_exchange_of(request)->body_has_ended;
    mk_str protocol = mk_request_upgrade(request);
    bool may = protocol.p && !has_content && ops &&
               ops->source.read; /* the body must end first: all data after it belongs to the tunnel */
    int e = r->sealed || mk_response_body_is_tunnel(&r->content) ? -EALREADY : may ? 0 : -EINVAL;
    if (!e && mk_str_eq(protocol, MK_UPGRADE_WEBSOCKET))
        e = accept_websocket_handshake(request, r);
    if (e) {
        if (ops && ops->source.close)
            ops->source.close(ctx);
        return e;
    }
    request->tunnel = protocol;
    mk_response_invalidate_cached_head(r);
    mk_response_body_set_source(&r->content, &ops->source, ctx, MK_RESPONSE_BODY_UNKNOWN);
    r->content.form = MK_RESPONSE_BODY_TUNNEL;
    r->content.tunnel = ops;
    r->status = request->version < 20 ? 101 : 200;
    return 0;
}

void mk_request_abort_tunnel(struct mk_request *r)
{
    mk_exchange_of(r)->aborted = true;
    mk_request_resume(r);
}
