/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request: request line and field lines up to the empty one (RFC 9112, sections 2, 3 and 5).
 *
 * Strict where leniency was ever used to smuggle: lines end with CRLF alone, one space is between the
 * parts of the request line, no space before a colon, no folded lines, no control characters. Allocates
 * nothing: all text points into the input. */
#ifndef MK_HTTP_REQUEST_HEAD_H
#define MK_HTTP_REQUEST_HEAD_H

#include <monkey/http.h>

#include "http/header.h"

enum {
    MK_REQUEST_HEAD_METHOD_MAX = 32, /* a longer method is answered with 501 */
    MK_REQUEST_HEAD_EMPTY_LINES_MAX =
        4, /* so many CRLF are allowed before the request line (RFC 9112, section 2.2) */
};

struct mk_request_head_limits {
    size_t head_max;     /* bytes of the whole head, its empty line included: 431 */
    size_t target_max;   /* bytes of the request target: 414 */
    unsigned fields_max; /* lines, at most MK_HEADERS_MAX: 431 */
};

struct mk_request_head {
    mk_str method_text, target;
    size_t path_len;       /* of a mk_path_is_plain() at the beginning of the target, which ends there or with
                              '?' behind it; 0: not known */
    enum mk_method method; /* MK_METHOD_UNKNOWN for a token that is not in the enum */
    unsigned minor;        /* the x of HTTP/1.x; above 1 is to be treated like 1 */
    struct mk_headers fields;
    size_t len; /* bytes of the head, with empty lines before and the one that ends it */
};

/* Reads a head from the beginning of `in`. The caller has set h->fields.at to room for limits->fields_max
 * lines. Answers
 *
 *   > 0  the bytes that the head takes; *h is complete, its text points into `in`
 *     0  not all of it is there yet: call again with the same bytes and more, and with `seen` = how many
 *        there were this time. *h means nothing
 *   < 0  the status to answer with, negated:
 *          400  not HTTP, or not exactly so
 *          414  the target is longer than target_max
 *          431  the head is longer than head_max, or has more lines than fields_max
 *          501  the method is longer than any that exists
 *          505  a version of HTTP other than 1.x
 *
 * `seen` is 0 for the first call. What was seen is not looked at again until the head is complete or
 * certainly bad, so a slow sender costs no more than a fast one. How the bytes were cut into
 * pieces never changes what a head is answered with, only how soon it is refused. */
int mk_request_head_parse(struct mk_request_head *h, mk_str in, size_t seen,
                          const struct mk_request_head_limits *limits) MK_MUST_USE;

#endif
