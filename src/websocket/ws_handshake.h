/* SPDX-License-Identifier: Apache-2.0 */
/* The WebSocket handshake: checks the origin, and negotiates subprotocol and compression. */
#ifndef MK_WEBSOCKET_WS_HANDSHAKE_H
#define MK_WEBSOCKET_WS_HANDSHAKE_H

#include "websocket/ws.h"

/* May a page of the request's Origin connect? */
bool mk_ws_handshake_origin_is_allowed(const struct mk_request *request, const char *origins);
/* Returns the client's first subprotocol that we support; absent: none. */
mk_str mk_ws_handshake_subprotocol(const struct mk_request *request, const char *ours);
/* Accepts the first supported compression offer; false: none. */
bool mk_ws_handshake_negotiate_deflate(const struct mk_request *request, unsigned flags,
                                       struct mk_ws_extension *out);

#endif
