/* SPDX-License-Identifier: Apache-2.0 */
/* Parser for request heads: request line and field lines up to the empty line (RFC 9112, sections 2, 3 and
 * 5).
 *
 * Strict wherever leniency enables request smuggling: lines must end with CRLF, the request line must have
 * single spaces, and there must be no space before a colon, no folded line and no control character.
 * Allocates nothing: all text points into the input. */
#ifndef MK_HTTP_REQUEST_HEAD_H
#define MK_HTTP_REQUEST_HEAD_H

#include <monkey/http.h>

#include "http/header.h"

enum {
    MK_REQUEST_HEAD_METHOD_MAX = 32,     /* longer methods are rejected with 501 */
    MK_REQUEST_HEAD_EMPTY_LINES_MAX = 4, /* maximum CRLFs before the request line (RFC 9112, section 2.2) */
};

/* Size limits of a request head. A request whose target is longer than target_max is rejected with 414; a
 * request that exceeds one of the other two limits is rejected with 431. */
struct mk_request_head_limits {
    size_t head_max;     /* maximum bytes of the whole head, including the empty line that ends it */
    size_t target_max;   /* maximum bytes of the request target */
    unsigned fields_max; /* maximum number of field lines; not above MK_HEADERS_MAX */
};

struct mk_request_head {
    mk_str method_text, target;
    size_t path_len;       /* length of the target's path (the part before '?') if mk_path_is_plain() accepts
                            * it; 0: unknown */
    enum mk_method method; /* MK_METHOD_UNKNOWN for a valid token that is not in the enum */
    unsigned minor;        /* the x of HTTP/1.x; treat a value above 1 like 1 */
    struct mk_headers fields;
    size_t len; /* bytes of the head, including empty lines before and after it */
};

/* Parses a head at the beginning of `in`. The caller has set h->fields.at to memory for limits->fields_max
 * lines. Returns
 *
 *   > 0  the length of the head; *h is complete, its text points into `in`
 *     0  incomplete: call again with the same bytes and more, and with `seen` = the number of bytes passed
 *        this time. *h is undefined
 *   < 0  the negated status to reject with:
 *          400  not HTTP, or malformed
 *          414  the target is longer than target_max
 *          431  the head is longer than head_max, or has more lines than fields_max
 *          501  the method is longer than MK_REQUEST_HEAD_METHOD_MAX
 *          505  an HTTP version other than 1.x
 *
 * `seen` is 0 in the first call. Bytes already seen are not scanned again until the head is complete or
 * certainly invalid, so a slow sender costs no more than a fast one. Fragmentation never changes the result
 * for a head, only how early it is rejected. */
int mk_request_head_parse(struct mk_request_head *h, mk_str in, size_t seen,
                          const struct mk_request_head_limits *limits) MK_MUST_USE;

#endif
