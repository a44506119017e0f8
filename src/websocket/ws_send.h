/* SPDX-License-Identifier: Apache-2.0 */
/* Sending: the send functions of monkey/websocket.h, and control frames. */
#ifndef MK_WEBSOCKET_WS_SEND_H
#define MK_WEBSOCKET_WS_SEND_H

#include "websocket/ws.h"

/* Queues a control frame regardless of the queue's length. False: out of memory. */
bool mk_ws_send_control(struct mk_websocket *s, unsigned opcode, mk_str payload) MK_MUST_USE;
/* Does the send queue have space? Without space, the owner cannot send, and messages of the client wait. */
bool mk_ws_send_has_room(const struct mk_websocket *s);

#endif
