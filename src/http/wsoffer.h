/* SPDX-License-Identifier: Apache-2.0 */
/* permessage-deflate (RFC 7692): what a client offers in Sec-WebSocket-Extensions, and the answer. */
#ifndef MK_HTTP_WSOFFER_H
#define MK_HTTP_WSOFFER_H

#include "base/buf.h"
#include "base/def.h"

enum {
    MK_WSOFFER_BITS_MAX = 15,
    MK_WSOFFER_BITS_MIN = 9, /* of what we send: zlib cannot do with 8 */
    MK_WSOFFER_ANSWER_MAX = 160,
};

/* What both sides agree upon. */
struct mk_wsoffer {
    bool server_keeps, client_keeps; /* may messages of that side refer to earlier ones? */
    uint8_t server_bits;             /* of the window of what we send */
};

/* Takes the first offer of the field's value that is valid and possible; false: there is none. `keeps`: we
 * would like contexts to be kept. */
bool mk_wsoffer_take(mk_str value, bool keeps, struct mk_wsoffer *out) MK_MUST_USE;
/* The value of the field of the response. */
void mk_wsoffer_answer(const struct mk_wsoffer *o, struct mk_buf *out);

#endif
