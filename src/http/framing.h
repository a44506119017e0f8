/* SPDX-License-Identifier: Apache-2.0 */
/* Framing of an HTTP/1 request: its host, the length of its body, and whether the connection persists (RFC
 * 9112, sections 3.2, 6 and 9; RFC 9110, section 10.1.1).
 *
 * Ambiguous messages, which two servers could interpret differently, are rejected. After any rejection the
 * connection must be closed: the start of the next request is unknown. */
#ifndef MK_HTTP_FRAMING_H
#define MK_HTTP_FRAMING_H

#include "http/authority.h"
#include "http/request_head.h"

enum mk_body {
    MK_BODY_NONE,    /* no body, or Content-Length: 0 */
    MK_BODY_LENGTH,  /* a body of `length` bytes, at least one */
    MK_BODY_CHUNKED, /* see http/chunked.h */
    MK_BODY_TUNNEL,  /* all following data; set when a handler opens a tunnel, never by mk_framing_parse() */
};

struct mk_framing {
    enum mk_body body;
    uint64_t length;      /* length of an MK_BODY_LENGTH body; otherwise 0 */
    bool keep_alive;      /* the client permits the connection to persist */
    bool expect_continue; /* the client waits for 100 Continue before it sends the body */
    mk_str host;          /* from Host, without port; absent in HTTP/1.0 without Host */
    uint32_t port;        /* from Host; MK_PORT_NONE: none */
};

/* Returns 0, or the (positive) status with which to reject the request; *out is complete only for 0.
 *
 *   400  Host missing (HTTP/1.1), repeated or malformed
 *   400  Content-Length repeated, a list, not a number or too large
 *   400  both Content-Length and Transfer-Encoding
 *   400  Transfer-Encoding in HTTP/1.0, or not ending with a single `chunked`
 *   501  another transfer coding before `chunked`
 *   417  an expectation other than 100-continue (ignored in HTTP/1.0)
 *   400  Connection with more than MK_CONNECTION_MAX elements
 *
 * `host` points into the head. For a target in absolute-form, the caller must use the target's authority
 * instead (RFC 9112, section 3.2.2). `last` caches the host of the previous head: pass the same struct for
 * every head. */
int mk_framing_parse(const struct mk_request_head *h, struct mk_authority_cache *last,
                     struct mk_framing *out) MK_MUST_USE;

/* Evaluates Expect, for any version that supports it. Returns 0 or 417. */
int mk_framing_parse_expect(const struct mk_headers *fields, bool *wants_continue) MK_MUST_USE;

#endif
