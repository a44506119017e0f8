/* SPDX-License-Identifier: Apache-2.0 */
/* permessage-deflate (RFC 7692): negotiation of Sec-WebSocket-Extensions. */
#ifndef MK_HTTP_WS_EXTENSION_H
#define MK_HTTP_WS_EXTENSION_H

#include "base/buf.h"
#include "base/compiler.h"

enum {
    MK_WS_EXTENSION_BITS_MAX = 15,
    MK_WS_EXTENSION_BITS_MIN = 9, /* minimum for the server's messages: zlib does not support 8 */
    MK_WS_EXTENSION_TEXT_MAX = 160,
};

/* Negotiated parameters. */
struct mk_ws_extension {
    bool server_keeps, client_keeps; /* context takeover: may messages of that side refer to earlier ones? */
    uint8_t server_bits;             /* base-2 logarithm of the window size for the server's messages */
};

/* Accepts the first offer in `value` that is valid and that the server can satisfy; false: none. `keeps`: the
 * server wants context takeover. */
bool mk_ws_extension_negotiate(mk_str value, bool keeps, struct mk_ws_extension *out) MK_MUST_USE;
/* Writes the value of Sec-WebSocket-Extensions for the response. */
void mk_ws_extension_format(const struct mk_ws_extension *o, struct mk_buf *out);

#endif
