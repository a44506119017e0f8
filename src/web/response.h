/* SPDX-License-Identifier: Apache-2.0 */
/* A response from inside: what include/monkey/response.h keeps closed. */
#ifndef MK_WEB_RESPONSE_H
#define MK_WEB_RESPONSE_H

#include <monkey/response.h>

#include "http/header.h"
#include "web/response_body.h"

struct mk_trailers;

enum { MK_RESPONSE_BLOCKS = 3, MK_RESPONSE_FIRST_FIELDS = 2 };

/* Fields that many responses share, ready in two forms: as lines of HTTP/1 text, and one by one. */
struct mk_header_block {
    mk_str text;  /* "Name: value\r\n..." */
    mk_str ready; /* or absent: status line, these fields and Content-Length of a 200 that has no others */
    mk_str cached_head_h2; /* the same in the form of HTTP/2; absent with it, and without HTTP/2 */
    const struct mk_header_field *fields;
    unsigned n;
};

/* Fields of a response that the server would write otherwise, or announce. */
enum { MK_RESPONSE_OWN_DATE = 1, MK_RESPONSE_OWN_SERVER = 2, MK_RESPONSE_OWN_TRAILER = 4 };

struct mk_response {
    struct mk_arena *arena;  /* the request's */
    unsigned status;         /* 0 until it is set */
    bool sealed;             /* its head is on the way */
    bool sent;               /* the request is over, and all of it was sent */
    bool is_error_page;      /* mk_response_is_error_page() */
    bool no_raw;             /* the protocol cannot send bytes as they are */
    uint8_t own;             /* which of MK_OWN_... it has; Trailer also if it has trailers */
    uint16_t failure_status; /* the status in its place if its content fails at once; 0: 500 */
    unsigned n_blocks, n_fields, cap_fields;
    const struct mk_header_block *blocks[MK_RESPONSE_BLOCKS]; /* outlive the request */
    struct mk_header_field *fields;
    struct mk_header_field first_fields[MK_RESPONSE_FIRST_FIELDS];
    struct mk_trailers *trailers; /* NULL: none */
    struct mk_response_body content;
};

void mk_response_init(struct mk_response *r, struct mk_arena *arena);
/* Forgets status, fields and content, for another answer in its place. */
void mk_response_reset(struct mk_response *r);

/* Adds fields without copying or checking them: they live as long as the request. */
void mk_response_add_header_block(struct mk_response *r, const struct mk_header_block *block);
bool mk_response_add_header_unchecked(struct mk_response *r, mk_str name, mk_str value) MK_MUST_USE;

/* Its content is another one now: what is ready in a block says the wrong length. */
void mk_response_invalidate_cached_head(struct mk_response *r);

/* Does a response of that status have content at all (RFC 9110, section 6.4.1)? */
static inline bool mk_status_has_content(unsigned status)
{
    return status >= 200 && status != 204 && status != 304;
}

#endif
