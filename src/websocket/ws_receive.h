/* SPDX-License-Identifier: Apache-2.0 */
/* Receiving: assembles frames into messages. A socket between messages uses no memory here. */
#ifndef MK_WEBSOCKET_WS_RECEIVE_H
#define MK_WEBSOCKET_WS_RECEIVE_H

#include "websocket/ws.h"

/* Reads as much input as allowed. False: no more is wanted. */
bool mk_ws_receive_input(struct mk_websocket *s, bool has_input);
/* Discards a partial message. */
void mk_ws_receive_free(struct mk_websocket *s);

#endif
