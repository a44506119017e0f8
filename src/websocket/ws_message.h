/* SPDX-License-Identifier: Apache-2.0 */
/* Messages for many sockets (broadcasts): framed once, and compressed once, when a socket first needs the
 * compressed frame. */
#ifndef MK_WEBSOCKET_WS_MESSAGE_H
#define MK_WEBSOCKET_WS_MESSAGE_H

#include <monkey/websocket.h>

#include "websocket/ws_deflate.h"

/* Queue entry: one of a message's two frames. */
struct mk_ws_frame {
    struct mk_websocket_message *message;
    mk_str bytes;
};

void mk_ws_message_ref(struct mk_websocket_message *m);
/* Returns the uncompressed frame of the message. */
const struct mk_ws_frame *mk_ws_message_plain_frame(const struct mk_websocket_message *m);
/* Returns the frame of the message, compressed by `coder` without context takeover; NULL: not shorter, or
 * compression failed. */
const struct mk_ws_frame *mk_ws_message_compressed_frame(struct mk_websocket_message *m,
                                                         struct mk_ws_deflate *coder);
/* Returns the payload length of the message. */
size_t mk_ws_message_len(const struct mk_websocket_message *m);

#endif
