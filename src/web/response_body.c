/* SPDX-License-Identifier: Apache-2.0 */
#include "web/response_body.h"

#include <unistd.h>

#include "base/assert.h"
#include "files/file_cache.h"

void mk_response_body_fini(struct mk_response_body *c)
{
    if (c->source && c->source->close)
        c->source->close(c->source_ctx);
    mk_response_body_init(c);
}

static struct mk_response_body_part *append_part(struct mk_response_body *c, struct mk_arena *arena)
{
    struct mk_response_body_part *p = c->last ? mk_arena_alloc(arena, sizeof *p) : &c->first;
    if (!p)
        return NULL;
    p->next = NULL;
    if (c->last)
        c->last->next = p;
    if (!c->parts)
        c->parts = p;
    c->last = p;
    return p;
}

bool mk_response_body_add_text(struct mk_response_body *c, struct mk_arena *arena, mk_str text)
{
    struct mk_response_body_part *p = append_part(c, arena);
    if (!p)
        return false;
    p->file = NULL;
    p->bytes = text;
    c->length += text.len;
    return true;
}

bool mk_response_body_add_file(struct mk_response_body *c, struct mk_arena *arena, struct mk_open_file *f,
                               uint64_t offset, uint64_t len)
{
    c->origin = f;
    if (f->content.p)
        return mk_response_body_add_text(c, arena,
                                         mk_str_first(mk_str_skip(f->content, (size_t)offset), (size_t)len));
    struct mk_response_body_part *p = append_part(c, arena);
    if (!p)
        return false;
    p->file = f;
    p->offset = offset;
    p->len = len;
    p->cached_up_to = 0;
    p->missed = false;
    c->length += len;
    return true;
}

void mk_response_body_set_source(struct mk_response_body *c, const struct mk_body_source_ops *ops, void *ctx,
                                 uint64_t length)
{
    mk_response_body_fini(c);
    c->form = MK_RESPONSE_BODY_SOURCE;
    c->source = ops;
    c->source_ctx = ctx;
    c->length = length;
}

void mk_response_body_move(struct mk_response_body *to, struct mk_response_body *from)
{
    *to = *from;
    if (to->parts == &from->first)
        to->parts = &to->first;
    if (to->last == &from->first)
        to->last = &to->first;
    mk_response_body_init(from);
}

static bool part_is_spent(const struct mk_response_body_part *p)
{
    return p->file ? p->len == 0 : p->bytes.len == 0;
}

struct mk_response_body_part *mk_response_body_current_part(struct mk_response_body *c)
{
    while (c->parts && part_is_spent(c->parts))
        c->parts = c->parts->next;
    return c->parts;
}

void mk_response_body_advance(struct mk_response_body *c, uint64_t n)
{
    struct mk_response_body_part *p = c->parts;
    MK_ASSERT(p && n <= (p->file ? p->len : p->bytes.len));
    if (p->file) {
        p->offset += n;
        p->len -= n;
    } else {
        p->bytes = mk_str_skip(p->bytes, (size_t)n);
    }
}

static ssize_t read_file_part(const struct mk_response_body_part *p, char *buf, size_t cap)
{
    ssize_t n = -EINVAL;
    if (p->offset >= p->cached_up_to)
        n = mk_file_read_nowait(p->file->fd, buf, cap, p->offset);
    if (n < 0 && n != -EAGAIN) { /* cached, or the file system may not support RWF_NOWAIT */
        n = pread(p->file->fd, buf, cap, (off_t)p->offset);
        n = n < 0 ? mk_err_last() : n;
    }
    if (n)
        return n;
    mk_file_cache_invalidate(p->file); /* the file was truncated: the next request reopens it */
    return -EIO;
}

static ssize_t read_part(const struct mk_response_body_part *p, char *buf, size_t cap)
{
    if (!p->file) {
        size_t n = mk_min(cap, p->bytes.len);
        memcpy(buf, p->bytes.p, n);
        return (ssize_t)n;
    }
    return read_file_part(p, buf, (size_t)(p->len < cap ? p->len : cap));
}

ssize_t mk_response_body_read(struct mk_response_body *c, char *buf, size_t cap)
{
    if (c->source)
        return c->source->read(c->source_ctx, buf, cap);
    struct mk_response_body_part *p = mk_response_body_current_part(c);
    if (!p)
        return 0;
    ssize_t n = read_part(p, buf, cap);
    if (n == -EAGAIN)
        p->missed = true;
    if (n > 0)
        mk_response_body_advance(c, (uint64_t)n);
    return n;
}
