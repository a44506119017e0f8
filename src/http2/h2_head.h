/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request, and trailers, out of the fields of HTTP/2 (RFC 9113, sections 8.2 and 8.3; extended
 * CONNECT: RFC 8441, section 4). What comes out has the form that http/request_head.h gives the heads of HTTP/1. */
#ifndef MK_HTTP2_H2_HEAD_H
#define MK_HTTP2_H2_HEAD_H

#include "base/arena.h"
#include "http/request_head.h"

enum { MK_H2_HEAD_HEADER_OVERHEAD = 32 }; /* what a field counts beside its bytes (RFC 9113, section 6.5.2) */

struct mk_h2_cookie_crumb;

/* All text is in the arena; what was not there is absent (p == NULL). */
struct mk_h2_head {
    mk_str method_text, scheme, authority, path, protocol;
    enum mk_method method; /* MK_METHOD_UNKNOWN for a token that is not in the enum */
    mk_str host;           /* of :authority or Host, without port */
    uint32_t port;         /* MK_PORT_NONE if there is none */
    bool has_length;       /* there is a Content-Length, `length` */
    uint64_t length;
    bool expects_continue;
    /* The regular ones. With :authority the first is Host with its value, and the one that was sent is left
     * out: it said the same. Cookies are one line. */
    struct mk_headers fields;

    /* Of the reading. */
    struct mk_arena *arena;
    const struct mk_request_head_limits *limits;
    struct mk_h2_cookie_crumb *first_crumb, **next_crumb;
    size_t size, cookie_len; /* as the limit counts; of all crumbs, joined */
    int answer;              /* what mk_h2_head_finish() shall say; 0: nothing is wrong so far */
    bool is_trailers, is_regular, has_host;
};

/* Nothing read yet. `room` is for limits->fields_max lines; both, and the arena, must outlive *h. */
void mk_h2_head_init(struct mk_h2_head *h, struct mk_arena *arena, struct mk_header_field *room,
                     const struct mk_request_head_limits *limits, bool is_trailers);

/* A mk_hpack_on_header whose context is the head. */
int mk_h2_head_on_header(void *head, mk_str name, mk_str value);

/* After the last field. 0: *h is complete. MK_H2_HEAD_MALFORMED: to be reset as PROTOCOL_ERROR (RFC 9113,
 * section 8.1.1). Or the status to answer with; *h then holds what is known of the request:
 *
 *   400  a target, scheme or host that HTTP/1 refuses too; no host; Content-Length repeated or no number
 *   414  :path is longer than target_max
 *   417  an expectation other than 100-continue
 *   431  the fields are larger than head_max, or more than fields_max
 *   501  the method is longer than any known one
 *   503  out of memory
 *
 * For trailers only 0, MK_H2_HEAD_MALFORMED, 431 and 503. The caller checks that the server advertised
 * extended CONNECT, that :scheme matches the connection, and that DATA is as long as Content-Length says. */
enum { MK_H2_HEAD_MALFORMED = -1 };
int mk_h2_head_finish(struct mk_h2_head *h) MK_MUST_USE;

#endif
