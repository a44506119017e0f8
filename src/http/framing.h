/* SPDX-License-Identifier: Apache-2.0 */
/* What the head of an HTTP/1 request says about the message: its host, the length of its body, and whether
 * the connection persists (RFC 9112, sections 3.2, 6 and 9; RFC 9110, section 10.1.1).
 *
 * Ambiguous messages, which two servers could read in two ways, are refused. After any refusal the connection
 * must be closed: the start of the next request is unknown. */
#ifndef MK_HTTP_FRAMING_H
#define MK_HTTP_FRAMING_H

#include "http/authority.h"
#include "http/request_head.h"

enum mk_body {
    MK_BODY_NONE,    /* no byte of a body follows; also for Content-Length: 0 */
    MK_BODY_LENGTH,  /* `length` bytes follow, at least one */
    MK_BODY_CHUNKED, /* see http/chunked.h */
    MK_BODY_TUNNEL,  /* everything that comes; a handler that opens a tunnel sets it, no head does */
};

struct mk_framing {
    enum mk_body body;
    uint64_t length;      /* of the body, for MK_BODY_LENGTH; else 0 */
    bool keep_alive;      /* the client is willing to send another request */
    bool expect_continue; /* the client waits for 100 before it sends the body */
    mk_str host;          /* out of Host, without port; absent in HTTP/1.0 without Host */
    uint32_t port;        /* out of Host, MK_PORT_NONE if it has none */
};

/* Answers 0, or the status to refuse with (positive); *out is complete only with 0.
 *
 *   400  Host missing (HTTP/1.1), repeated or malformed
 *   400  Content-Length repeated, a list, not a number or too big
 *   400  both Content-Length and Transfer-Encoding
 *   400  Transfer-Encoding in HTTP/1.0, or not ending with the one `chunked`
 *   501  another transfer coding before `chunked`
 *   417  an expectation other than 100-continue (HTTP/1.0 knows none, they are ignored there)
 *
 * `host` points into the head. With a target in absolute-form its authority counts, not this one (RFC 9112,
 * section 3.2.2): that is the caller's to choose. `last` is what it keeps from one head to the next. */
int mk_framing_parse(const struct mk_request_head *h, struct mk_authority_cache *last,
                     struct mk_framing *out) MK_MUST_USE;

/* What Expect says in any version that knows it: 0, or 417. */
int mk_framing_parse_expect(const struct mk_headers *fields, bool *wants_continue) MK_MUST_USE;

#endif
