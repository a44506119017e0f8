/* SPDX-License-Identifier: Apache-2.0 */
/* Response internals, opaque in include/monkey/response.h. */
#ifndef MK_WEB_RESPONSE_H
#define MK_WEB_RESPONSE_H

#include <monkey/body_source.h>
#include <monkey/response.h>
#include <monkey/tunnel.h>

#include "base/arena.h"
#include "files/open_file.h"
#include "http/header.h"

#define MK_RESPONSE_BODY_UNKNOWN UINT64_MAX

struct mk_response_body_part {
    struct mk_response_body_part *next;
    struct mk_open_file *file; /* NULL: the part is `bytes` */
    mk_str bytes;
    uint64_t offset, len;  /* file part: remaining range */
    uint64_t cached_up_to; /* file part: offset up to which the file is known to be cached */
    bool missed;           /* file part: the last read would have blocked on the disk */
};

enum mk_response_body_form {
    MK_RESPONSE_BODY_PARTS,
    MK_RESPONSE_BODY_SOURCE,
    MK_RESPONSE_BODY_RAW,    /* a source that produces the complete response, head included */
    MK_RESPONSE_BODY_TUNNEL, /* a source that produces the outgoing direction of a tunnel */
};

/* Body of a response: parts in memory or in files, or a source that produces it. The sender uses parts
 * directly (sendfile) or reads bytes; both advance the same cursor. */
struct mk_response_body {
    enum mk_response_body_form form;
    uint64_t length; /* initial length of the whole body; MK_RESPONSE_BODY_UNKNOWN: not known */
    struct mk_response_body_part *parts, *last;
    struct mk_response_body_part first;      /* storage of the first part: most bodies have only one */
    const struct mk_body_source_ops *source; /* NULL: parts */
    void *source_ctx;
    const struct mk_tunnel_ops *tunnel; /* operations of a tunnel; undefined for any other body */
    const struct mk_open_file *origin;  /* the file that the body comes from, even if its content is in
                                         * memory; NULL: none */
};

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

/* DATE, SERVER: the response has this header already, so the server does not write its own. TRAILER: the
 * response has trailers, or a Trailer header. */
enum { MK_RESPONSE_OWN_DATE = 1, MK_RESPONSE_OWN_SERVER = 2, MK_RESPONSE_OWN_TRAILER = 4 };

struct mk_response {
    struct mk_arena *arena;  /* arena of the request */
    unsigned status;         /* 0: not set */
    bool sealed;             /* the head is being sent */
    bool sent;               /* the request has ended, and the response was sent completely */
    bool is_error_page;      /* mk_response_is_error_page() */
    bool no_raw;             /* the protocol cannot send raw bytes */
    uint8_t own;             /* MK_RESPONSE_OWN_... flags */
    uint8_t reset_code;      /* HTTP/2 error code if the body fails after part of it was sent; 0: not set */
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

/* ---- The body ---- */

/* Initializes an empty body. */
static inline void mk_response_body_init(struct mk_response_body *c)
{
    c->form = MK_RESPONSE_BODY_PARTS;
    c->length = 0;
    c->parts = c->last = NULL;
    c->source = NULL;
    c->origin = NULL;
}

/* Closes the source. File references belong to the caller that added them. */
void mk_response_body_fini(struct mk_response_body *c);

/* Appends a part. The text, or the file reference, must outlive the body. False: out of memory. */
bool mk_response_body_add_text(struct mk_response_body *c, struct mk_arena *arena, mk_str text) MK_MUST_USE;
bool mk_response_body_add_file(struct mk_response_body *c, struct mk_arena *arena, struct mk_open_file *f,
                               uint64_t offset, uint64_t len) MK_MUST_USE;
/* Sets a source instead of parts. The body will close it. */
void mk_response_body_set_source(struct mk_response_body *c, const struct mk_body_source_ops *ops, void *ctx,
                                 uint64_t length);

/* Moves the body to uninitialized memory; leaves `from` empty. */
void mk_response_body_move(struct mk_response_body *to, struct mk_response_body *from);

static inline bool mk_response_body_is_raw(const struct mk_response_body *c)
{
    return c->form == MK_RESPONSE_BODY_RAW;
}

/* Is the body a tunnel? Then source->read produces the data that we send, and tunnel->on_input(source_ctx)
 * reads the data from the client. */
static inline bool mk_response_body_is_tunnel(const struct mk_response_body *c)
{
    return c->form == MK_RESPONSE_BODY_TUNNEL;
}

/* Returns the part at the cursor, NULL at the end; mk_response_body_advance() consumes n of its bytes. */
struct mk_response_body_part *mk_response_body_current_part(struct mk_response_body *c);
void mk_response_body_advance(struct mk_response_body *c, uint64_t n);

/* Reads bytes of any kind of body, with the results of mk_body_source_ops.read. -EIO: a file was truncated;
 * -EAGAIN also if the part at the cursor is a file range that is not cached, so reading would block. */
ssize_t mk_response_body_read(struct mk_response_body *c, char *buf, size_t cap);

#endif
