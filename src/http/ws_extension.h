/* SPDX-License-Identifier: Apache-2.0 */
/* permessage-deflate (RFC 7692): what a client offers in Sec-WebSocket-Extensions, and the answer. */
#ifndef MK_HTTP_WS_EXTENSION_H
#define MK_HTTP_WS_EXTENSION_H

#include "base/buf.h"
#include "base/compiler.h"

enum {
    MK_WS_EXTENSION_BITS_MAX = 15,
    MK_WS_EXTENSION_BITS_MIN = 9, /* of what we send: zlib cannot do with 8 */
    MK_WS_EXTENSION_TEXT_MAX = 160,
};

/* What both sides agree upon. */
struct mk_ws_extension {
    bool server_keeps, client_keeps; /* may messages of that side refer to earlier ones? */
    uint8_t server_bits;             /* of the window of what we send */
};

/* Takes the first offer of the field's value that is valid and possible; false: there is none. `keeps`: we
 * would like contexts to be kept. */
bool mk_ws_extension_negotiate(mk_str value, bool keeps, struct mk_ws_extension *out) MK_MUST_USE;
/* The value of the field of the response. */
void mk_ws_extension_format(const struct mk_ws_extension *o, struct mk_buf *out);

#endif
