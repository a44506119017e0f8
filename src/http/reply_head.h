/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a response (RFC 9112, section 4), read to the letter: a response that two clients could
 * understand in two ways is refused. Allocates nothing: all text points into the input. */
#ifndef MK_HTTP_REPLY_HEAD_H
#define MK_HTTP_REPLY_HEAD_H

#include "http/field.h"

/* How the length of the content is determined (RFC 9112, section 6.3). */
enum mk_reply_body { MK_REPLY_NONE, MK_REPLY_LENGTH, MK_REPLY_CHUNKED, MK_REPLY_UNTIL_CLOSE };

/* The request that the response answers. */
struct mk_reply_request {
    bool head;    /* its method is HEAD: the response has no content */
    bool upgrade; /* it asked for another protocol: 101 is an answer */
};

struct mk_reply_head {
    unsigned status, minor; /* the x of HTTP/1.x: 0 or 1 */
    mk_str reason;
    enum mk_reply_body body;
    uint64_t length; /* for MK_REPLY_LENGTH */
    bool keep_alive; /* the connection may be used again */
    struct mk_fields fields;
};

/* `text` is a whole head, its empty line included. The caller has set h->fields.at to room for `fields_max`
 * lines (at most MK_FIELDS_MAX); with 0 no lines are kept. NULL, or what is wrong with the head: static. */
const char *mk_reply_head_parse(struct mk_reply_head *h, mk_str text, unsigned fields_max,
                                struct mk_reply_request request) MK_MUST_USE;

#endif
