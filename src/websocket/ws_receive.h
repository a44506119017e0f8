/* SPDX-License-Identifier: Apache-2.0 */
/* What the client sends: frames become messages. A socket that waits for a message owns no memory for it. */
#ifndef MK_WEBSOCKET_WS_RECEIVE_H
#define MK_WEBSOCKET_WS_RECEIVE_H

#include "websocket/ws.h"

/* Reads what there is, as far as it may. False: nothing more is wanted. */
bool mk_ws_receive_input(struct mk_websocket *s);
/* Forgets what is incomplete. */
void mk_ws_receive_free(struct mk_websocket *s);

#endif
