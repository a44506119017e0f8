/* SPDX-License-Identifier: Apache-2.0 */
/* Response internals, opaque in include/monkey/response.h. */
#ifndef MK_WEB_RESPONSE_H
#define MK_WEB_RESPONSE_H

#include <monkey/response.h>

#include "http/header.h"
#include "web/response_body.h"

struct mk_trailers;

enum { MK_RESPONSE_BLOCKS = 3, MK_RESPONSE_FIRST_FIELDS = 2 };

/* Headers shared by many responses, as HTTP/1 text and as a list. */
struct mk_header_block {
    mk_str text;  /* "Name: value\r\n..." */
    mk_str ready; /* complete head of a 200 with only these headers and Content-Length; may be absent */
    mk_str cached_head_h2; /* the same head, HPACK-encoded; absent without HTTP/2, or if `ready` is absent */
    const struct mk_header_field *fields;
    unsigned n;
};

/* The response has its own Date or Server, which the server then does not write; or it has trailers or its
 * own Trailer header. */
enum { MK_RESPONSE_OWN_DATE = 1, MK_RESPONSE_OWN_SERVER = 2, MK_RESPONSE_OWN_TRAILER = 4 };

struct mk_response {
    struct mk_arena *arena;  /* arena of the request */
    unsigned status;         /* 0: not set */
    bool sealed;             /* the head is being sent */
    bool sent;               /* the request has ended, and the response was sent completely */
    bool is_error_page;      /* mk_response_is_error_page() */
    bool no_raw;             /* the protocol cannot send raw bytes */
    uint8_t own;             /* MK_RESPONSE_OWN_... flags of its headers; includes Trailer if it has
                                trailers */
    uint16_t failure_status; /* status of the error page if the body fails before any of it is sent; 0: 500 */
    unsigned n_blocks, n_fields, cap_fields;
    const struct mk_header_block *blocks[MK_RESPONSE_BLOCKS]; /* must outlive the request */
    struct mk_header_field *fields;
    struct mk_header_field first_fields[MK_RESPONSE_FIRST_FIELDS];
    struct mk_trailers *trailers; /* NULL: none */
    struct mk_response_body content;
};

void mk_response_init(struct mk_response *r, struct mk_arena *arena);
/* Clears status, headers and body, to build another response. */
void mk_response_reset(struct mk_response *r);

/* Adds headers without copying or validating them: they must live as long as the request. */
void mk_response_add_header_block(struct mk_response *r, const struct mk_header_block *block);
/* Like mk_response_add_header_block(), but a Content-Type or Cache-Control that a hook has set takes
 * precedence. False: out of memory. */
static inline bool mk_response_add_default_block(struct mk_response *r,
                                                 const struct mk_header_block *block) MK_MUST_USE;
bool mk_response_merge_default_block(struct mk_response *r, const struct mk_header_block *block) MK_MUST_USE;
bool mk_response_add_header_unchecked(struct mk_response *r, mk_str name, mk_str value) MK_MUST_USE;

/* Call this after replacing the body: the prepared heads contain the old length. */
void mk_response_invalidate_cached_head(struct mk_response *r);

/* Can a response with that status have a body (RFC 9110, section 6.4.1)? */
static inline bool mk_status_has_content(unsigned status)
{
    return status >= 200 && status != 204 && status != 304;
}

static inline bool mk_response_add_default_block(struct mk_response *r, const struct mk_header_block *block)
{
    if (r->n_fields)
        return mk_response_merge_default_block(r, block);
    mk_response_add_header_block(r, block);
    return true;
}

#endif
