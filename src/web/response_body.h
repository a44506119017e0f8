/* SPDX-License-Identifier: Apache-2.0 */
/* Body of a response: parts in memory or in files, or a source that produces it. The sender uses parts
 * directly (sendfile) or reads bytes; both advance the same cursor. */
#ifndef MK_WEB_RESPONSE_BODY_H
#define MK_WEB_RESPONSE_BODY_H

#include <monkey/body_source.h>
#include <monkey/tunnel.h>

#include "base/arena.h"
#include "files/open_file.h"

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

struct mk_response_body {
    enum mk_response_body_form form;
    uint64_t length; /* initial length of the whole body; MK_RESPONSE_BODY_UNKNOWN */
    struct mk_response_body_part *parts, *last;
    struct mk_response_body_part first;      /* most bodies have one part: no allocation */
    const struct mk_body_source_ops *source; /* NULL: parts */
    void *source_ctx;
    const struct mk_tunnel_ops *tunnel; /* operations of a tunnel; NULL for any other body */
    const struct mk_open_file *origin;  /* the file that the body comes from, in memory or not; NULL: none */
};

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
