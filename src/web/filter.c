/* SPDX-License-Identifier: Apache-2.0 */
#include "web/filter.h"

#include "web/response.h"

/* Allocated in the request's arena. */
struct mk_filter_next {
    const struct mk_filter_ops *ops;
    void *ctx;
    struct mk_response_body content;
    uint64_t left; /* bytes left to read; MK_RESPONSE_BODY_UNKNOWN: not known */
    mk_err broken; /* error returned by all further reads; 0: none */
    bool ended;
};

/* Records the end or an error, after which the next filter or body is not read again. */
static void record_read_result(struct mk_filter_next *next, ssize_t n)
{
    next->ended = n == 0;
    next->broken = n < 0 ? (mk_err)n : 0;
    if (n > 0 && next->left != MK_RESPONSE_BODY_UNKNOWN)
        next->left -= (uint64_t)n;
}

ssize_t mk_filter_next_read(struct mk_filter_next *next, char *buf, size_t cap)
{
    if (next->broken || next->ended)
        return next->broken;
    if (cap == 0)
        return -EINVAL;
    if (next->left < cap)
        cap = (size_t)next->left;
    ssize_t n = cap ? mk_response_body_read(&next->content, buf, cap) : 0;
    if (n == -EAGAIN)
        return n;
    bool too_short = n == 0 && next->left > 0 && next->left != MK_RESPONSE_BODY_UNKNOWN;
    if (too_short || n > (ssize_t)cap)
        n = -EIO;
    record_read_result(next, n);
    return n;
}

static ssize_t filter_read(void *ctx, char *buf, size_t cap)
{
    struct mk_filter_next *next = ctx;
    return next->ops->read(next->ctx, next, buf, cap);
}

static void close_filter(void *ctx)
{
    struct mk_filter_next *next = ctx;
    if (next->ops->close)
        next->ops->close(next->ctx);
    mk_response_body_fini(&next->content);
}

static const struct mk_body_source_ops filter_source = {.read = filter_read, .close = close_filter};

int mk_response_add_filter(struct mk_response *r, const struct mk_filter_ops *ops, void *ctx, int64_t length)
{
    bool odd = length < MK_LENGTH_UNKNOWN || mk_response_body_is_raw(&r->content) ||
               mk_response_body_is_tunnel(&r->content);
    struct mk_filter_next *next = r->sealed || odd ? NULL : mk_arena_alloc(r->arena, sizeof *next);
    if (!next) {
        if (ops->close)
            ops->close(ctx);
        return r->sealed ? -EALREADY : odd ? -EINVAL : -ENOMEM;
    }
    next->ops = ops;
    next->ctx = ctx;
    next->left = r->content.length;
    next->broken = 0;
    next->ended = false;
    mk_response_body_move(&next->content, &r->content);
    mk_response_invalidate_cached_head(r);
    mk_response_body_set_source(&r->content, &filter_source, next,
                                length < 0 ? MK_RESPONSE_BODY_UNKNOWN : (uint64_t)length);
    return 0;
}

struct mk_response_body *mk_filter_unfiltered_body(struct mk_response_body *c)
{
    while (c->source == &filter_source) {
        struct mk_filter_next *next = c->source_ctx;
        c = &next->content;
    }
    return c;
}
