/* SPDX-License-Identifier: Apache-2.0 */
/* What both sides agree upon before the first frame: origin, subprotocol, compression. */
#ifndef MK_WEBSOCKET_WS_HANDSHAKE_H
#define MK_WEBSOCKET_WS_HANDSHAKE_H

#include "websocket/ws.h"

/* May a page of the request's Origin connect? */
bool mk_ws_handshake_origin_is_allowed(const struct mk_request *request, const char *origins);
/* The first subprotocol of the client's list that is one of ours; absent if there is none. */
mk_str mk_ws_handshake_subprotocol(const struct mk_request *request, const char *ours);
/* The first offer of compression that is possible; false: there is none. */
bool mk_ws_handshake_negotiate_deflate(const struct mk_request *request, unsigned flags,
                                       struct mk_ws_extension *out);

#endif
