/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that many sockets send: framed once, compressed once, when the first socket needs that. */
#ifndef MK_WEBSOCKET_WS_MESSAGE_H
#define MK_WEBSOCKET_WS_MESSAGE_H

#include <monkey/websocket.h>

#include "websocket/ws_deflate.h"

/* What a queue holds of a message: one of its two frames. */
struct mk_ws_frame {
    struct mk_websocket_message *message;
    mk_str bytes;
};

void mk_ws_message_ref(struct mk_websocket_message *m);
/* Its frame, not compressed. */
const struct mk_ws_frame *mk_ws_message_plain_frame(const struct mk_websocket_message *m);
/* Its frame, compressed by `coder` without reference to others; NULL if that makes it no shorter, or fails.
 */
const struct mk_ws_frame *mk_ws_message_compressed_frame(struct mk_websocket_message *m,
                                                         struct mk_ws_deflate *coder);
/* Length of its payload. */
size_t mk_ws_message_len(const struct mk_websocket_message *m);

#endif
