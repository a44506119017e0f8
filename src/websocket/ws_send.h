/* SPDX-License-Identifier: Apache-2.0 */
/* Frames for the client: the functions of monkey/websocket.h that send, and what the socket says by itself.
 */
#ifndef MK_WEBSOCKET_WS_SEND_H
#define MK_WEBSOCKET_WS_SEND_H

#include "websocket/ws.h"

/* A control frame, whatever waits already. False when memory is out. */
bool mk_ws_send_control(struct mk_websocket *s, unsigned opcode, mk_str payload) MK_MUST_USE;
/* May the owner send a message, and may the client? */
bool mk_ws_send_has_room(const struct mk_websocket *s);

#endif
