/* SPDX-License-Identifier: Apache-2.0 */
/* The head of an answer of HTTP/1 (RFC 9112), read to the letter: a server that two clients could understand
 * in two ways is named, not humoured. Does no I/O. */
#ifndef PACE_HEAD_H
#define PACE_HEAD_H

#include "base/str.h"

enum pace_body { PACE_BODY_NONE, PACE_BODY_LENGTH, PACE_BODY_CHUNKED, PACE_BODY_UNTIL_CLOSE };

struct pace_head {
    unsigned status;
    enum pace_body body;
    uint64_t length; /* for PACE_BODY_LENGTH */
    bool keep_alive; /* the connection may be used again */
};

/* `text` is a whole head, its empty line included. NULL: it is fine; else what is wrong with it, static. The
 * request was a GET without Upgrade and without TE. */
const char *pace_head_parse(mk_str text, struct pace_head *out) MK_MUST_USE;

#endif
