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
static void record_read_result(struct mk_filter_next *inner, ssize_t n)
{
    inner->ended = n == 0;
    inner->broken = n < 0 ? (mk_err)n : 0;
    if (n > 0 && inner->left != MK_RESPONSE_BODY_UNKNOWN)
        inner->left -= (uint64_t)n;
}

ssize_t mk_filter_next_read(struct mk_filter_next *inner, char *buf, size_t cap)
{
    if (inner->broken || inner->ended)
        return inner->broken;
    if (cap == 0)
        return -EINVAL;
    if (inner->left < cap)
        cap = (size_t)inner->left;
    ssize_t n = cap ? mk_response_body_read(&inner->content, buf, cap) : 0;
    if (n == -EAGAIN)
        return n;
    bool too_short = n == 0 && inner->left > 0 && inner->left != MK_RESPONSE_BODY_UNKNOWN;
    if (too_short || n > (ssize_t)cap)
        n = -EIO;
    record_read_result(inner, n);
    return n;
}

static ssize_t filter_read(void *ctx, char *buf, size_t cap)
{
    struct mk_filter_next *inner = ctx;
    return inner->ops->read(inner->ctx, inner, buf, cap);
}

static void close_filter(void *ctx)
{
    struct mk_filter_next *inner = ctx;
    if (inner->ops->close)
        inner->ops->close(inner->ctx);
    mk_response_body_fini(&inner->content);
}

static const struct mk_body_source_ops filter_source = {.read = filter_read, .close = close_filter};

int mk_response_add_filter(struct mk_response *r, const struct mk_filter_ops *ops, void *ctx, int64_t length)
{
    bool odd = length < MK_LENGTH_UNKNOWN || mk_response_body_is_raw(&r->content) ||
               mk_response_body_is_tunnel(&r->content);
    struct mk_filter_next *inner = r->sealed || odd ? NULL : mk_arena_alloc(r->arena, sizeof *inner);
    if (!inner) {
        if (ops->close)
            ops->close(ctx);
        return r->sealed ? -EALREADY : odd ? -EINVAL : -ENOMEM;
    }
    inner->ops = ops;
    inner->ctx = ctx;
    inner->left = r->content.length;
    inner->broken = 0;
    inner->ended = false;
    mk_response_body_move(&inner->content, &r->content);
    mk_response_invalidate_cached_head(r);
    mk_response_body_set_source(&r->content, &filter_source, inner,
                                length < 0 ? MK_RESPONSE_BODY_UNKNOWN : (uint64_t)length);
    return 0;
}

struct mk_response_body *mk_filter_unfiltered_body(struct mk_response_body *c)
{
    while (c->source == &filter_source) {
        struct mk_filter_next *inner = c->source_ctx;
        c = &inner->content;
    }
    return c;
}
