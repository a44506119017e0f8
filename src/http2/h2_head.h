/* SPDX-License-Identifier: Apache-2.0 */
/* Builds request heads and trailers from HTTP/2 headers (RFC 9113, sections 8.2 and 8.3; extended CONNECT:
 * RFC 8441, section 4). The result has the form that http/request_head.h returns for HTTP/1. */
#ifndef MK_HTTP2_H2_HEAD_H
#define MK_HTTP2_H2_HEAD_H

#include "base/arena.h"
#include "http/request_head.h"

/* Size of a header in addition to its bytes (RFC 9113, section 6.5.2). */
enum { MK_H2_HEAD_HEADER_OVERHEAD = 32 };

struct mk_h2_cookie_crumb;

/* All text is in the arena; missing parts are absent (p == NULL). */
struct mk_h2_head {
    mk_str method_text, scheme, authority, path, protocol;
    enum mk_method method; /* MK_METHOD_UNKNOWN for a valid token that is not in the enum */
    mk_str host;           /* from :authority or Host, without the port */
    uint32_t port;         /* MK_PORT_NONE: none */
    bool has_length;       /* Content-Length is present, in `length` */
    uint64_t length;
    bool expects_continue;
    /* Regular headers. If :authority was sent, the first one is Host with the value of :authority; an
     * equivalent Host header of the client is omitted. Cookies are joined into one header. */
    struct mk_headers fields;

    /* Parser state. */
    struct mk_arena *arena;
    const struct mk_request_head_limits *limits;
    struct mk_h2_cookie_crumb *first_crumb, **next_crumb;
    size_t size, cookie_len; /* total size, to compare with head_max; length of all joined cookie pieces */
    int result;              /* result of mk_h2_head_finish(); 0: no error so far */
    bool is_trailers, is_regular, has_host;
};

/* Initializes an empty head. `buf` has space for limits->fields_max headers; `buf`, the limits and the arena
 * must outlive *h. */
void mk_h2_head_init(struct mk_h2_head *h, struct mk_arena *arena, struct mk_header_field *buf,
                     const struct mk_request_head_limits *limits, bool is_trailers);

/* Implements mk_hpack_on_header; the context is the head. */
int mk_h2_head_on_header(void *head, mk_str name, mk_str value);

/* Call it after the last header. 0: *h is complete. MK_H2_HEAD_MALFORMED: reset the stream with
 * PROTOCOL_ERROR (RFC 9113, section 8.1.1). Otherwise the result is the status of the rejection, and *h holds
 * the parts of the request that were parsed:
 *
 *   400  a target, scheme or host that is invalid in HTTP/1 too; no host, or Host repeated; Content-Length
 *        repeated or not a number
 *   414  :path is longer than target_max
 *   417  an expectation other than 100-continue
 *   431  the headers are larger than head_max, or more than fields_max
 *   501  the method is longer than any known method
 *   503  out of memory
 *
 * For trailers, the only results are 0, MK_H2_HEAD_MALFORMED, 431 and 503. The caller checks that
 * DATA is as long as Content-Length. :scheme is not compared with the connection. */
enum { MK_H2_HEAD_MALFORMED = -1 };
int mk_h2_head_finish(struct mk_h2_head *h) MK_MUST_USE;

#endif
