/* SPDX-License-Identifier: Apache-2.0 */
/* The head of an answer of HTTP/1 (RFC 9112), read to the letter: a server that two clients could understand
 * in two ways is named, not humoured. Does no I/O. */
#ifndef LOAD_HEAD_H
#define LOAD_HEAD_H

#include "base/str.h"

enum load_body { LOAD_BODY_NONE, LOAD_BODY_LENGTH, LOAD_BODY_CHUNKED, LOAD_BODY_UNTIL_CLOSE };

struct load_head {
    unsigned status;
    enum load_body body;
    uint64_t length; /* for LOAD_BODY_LENGTH */
    bool keep_alive; /* the connection may be used again */
};

/* `text` is a whole head, its empty line included. NULL: it is fine; else what is wrong with it, static. The
 * request was a GET without Upgrade and without TE. */
const char *load_head_parse(mk_str text, struct load_head *out) MK_MUST_USE;

#endif
