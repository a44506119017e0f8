/* SPDX-License-Identifier: Apache-2.0 */
/* The content of a response on its way out: parts in memory or in files, or a source that makes it. The
 * sender takes parts as they are (sendfile) or pulls bytes; both move the same cursor. */
#ifndef MK_WEB_RESPONSE_BODY_H
#define MK_WEB_RESPONSE_BODY_H

#include <monkey/body_source.h>
#include <monkey/tunnel.h>

#include "base/arena.h"
#include "files/open_file.h"

#define MK_RESPONSE_BODY_UNKNOWN UINT64_MAX

struct mk_response_body_part {
    struct mk_response_body_part *next;
    struct mk_open_file *file; /* NULL: `bytes` is the part */
    mk_str bytes;
    uint64_t offset, len;  /* of a part in a file: what is left of it, */
    uint64_t cached_up_to; /* and up to where it is known to be in memory */
    bool missed;           /* of one in a file: the last pull would have had to wait for a disk */
};

struct mk_response_body {
    uint64_t length; /* of the whole, as it was at the beginning; MK_RESPONSE_BODY_UNKNOWN */
    struct mk_response_body_part *parts, *last;
    struct mk_response_body_part first; /* most content has one part: it needs no memory of its own */
    const struct mk_body_source_ops *source;
    void *source_ctx;
    const struct mk_tunnel_ops *tunnel; /* of a source: it is our direction of a tunnel; NULL: it is not */
    const struct mk_open_file *origin;  /* the file that it comes from, in memory or not; NULL: none */
    bool raw;                           /* of a source: it makes the whole answer, head included */
};

/* Empty. */
static inline void mk_response_body_init(struct mk_response_body *c)
{
    c->length = 0;
    c->parts = c->last = NULL;
    c->source = NULL;
    c->origin = NULL;
}

/* Gives back what it holds: its source is closed. Files belong to the caller that added them. */
void mk_response_body_fini(struct mk_response_body *c);

/* Adds to the end. The text, and the reference to the file, must outlive the content. False when memory is
 * out. */
bool mk_response_body_add_text(struct mk_response_body *c, struct mk_arena *arena, mk_str text) MK_MUST_USE;
bool mk_response_body_add_file(struct mk_response_body *c, struct mk_arena *arena, struct mk_open_file *f,
                               uint64_t offset, uint64_t len) MK_MUST_USE;
/* Instead of parts. The content will close the source. */
void mk_response_body_set_source(struct mk_response_body *c, const struct mk_body_source_ops *ops, void *ctx,
                                 uint64_t length);

/* To another place, which is not initialised; leaves `from` empty. */
void mk_response_body_move(struct mk_response_body *to, struct mk_response_body *from);

static inline bool mk_response_body_is_raw(const struct mk_response_body *c)
{
    return c->source && c->raw;
}

/* Then source->pull makes what we send, and tunnel->on_input(source_ctx) reads what the client sends.
 */
static inline bool mk_response_body_is_tunnel(const struct mk_response_body *c)
{
    return c->source && c->tunnel;
}

/* The part at the cursor, NULL at the end of the parts; mk_response_body_advance moves over n of its bytes. */
struct mk_response_body_part *mk_response_body_current_part(struct mk_response_body *c);
void mk_response_body_advance(struct mk_response_body *c, uint64_t n);

/* Bytes from wherever they are, as mk_body_source_ops.pull answers. -EIO when a file ended too early; -EAGAIN also
 * when the part at the cursor is in a file and beyond what is warm: a disk would have to be waited for. */
ssize_t mk_response_body_read(struct mk_response_body *c, char *buf, size_t cap);

#endif
