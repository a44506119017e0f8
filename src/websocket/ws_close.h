/* SPDX-License-Identifier: Apache-2.0 */
/* Closing a WebSocket (RFC 6455, section 7). */
#ifndef MK_WEBSOCKET_WS_CLOSE_H
#define MK_WEBSOCKET_WS_CLOSE_H

#include "websocket/ws.h"

/* Handles a protocol violation or a local failure: sends the close code, and ends the connection. */
void mk_ws_close_with_error(struct mk_websocket *s, unsigned code);
/* Handles a Close frame with this payload. */
void mk_ws_close_on_frame(struct mk_websocket *s, mk_str payload);
/* Handles the end of the client's data, with or without a Close frame before it. */
void mk_ws_close_on_eof(struct mk_websocket *s);

#endif
