/* SPDX-License-Identifier: Apache-2.0 */
#include "web/filter.h"

#include "web/response.h"

/* In the arena of the request. */
struct mk_filter_next {
    const struct mk_filter_ops *ops;
    void *ctx;
    struct mk_content content;
    uint64_t left; /* of it; MK_CONTENT_UNKNOWN */
    mk_err broken; /* what every pull answers from now on */
    bool ended;
};

/* Once it has ended or failed, the content below is not pulled again. */
static void note(struct mk_filter_next *inner, ssize_t n)
{
    inner->ended = n == 0;
    inner->broken = n < 0 ? (mk_err)n : 0;
    if (n > 0 && inner->left != MK_CONTENT_UNKNOWN)
        inner->left -= (uint64_t)n;
}

ssize_t mk_filter_next_read(struct mk_filter_next *inner, char *room, size_t cap)
{
    if (inner->broken || inner->ended)
        return inner->broken;
    if (cap == 0)
        return -EINVAL;
    if (inner->left < cap)
        cap = (size_t)inner->left;
    ssize_t n = cap ? mk_content_pull(&inner->content, room, cap) : 0;
    if (n == -EAGAIN)
        return n;
    bool too_short = n == 0 && inner->left > 0 && inner->left != MK_CONTENT_UNKNOWN;
    if (too_short || n > (ssize_t)cap)
        n = -EIO;
    note(inner, n);
    return n;
}

static ssize_t pull(void *ctx, char *room, size_t cap)
{
    struct mk_filter_next *inner = ctx;
    return inner->ops->pull(inner->ctx, inner, room, cap);
}

static void close_all(void *ctx)
{
    struct mk_filter_next *inner = ctx;
    if (inner->ops->close)
        inner->ops->close(inner->ctx);
    mk_content_fini(&inner->content);
}

static const struct mk_body_source_ops filter_source = {.pull = pull, .close = close_all};

int mk_response_add_filter(struct mk_response *r, const struct mk_filter_ops *ops, void *ctx, int64_t length)
{
    bool odd =
        length < MK_LENGTH_UNKNOWN || mk_content_is_raw(&r->content) || mk_content_is_tunnel(&r->content);
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
    mk_content_move(&inner->content, &r->content);
    mk_response_unready(r);
    mk_content_set_source(&r->content, &filter_source, inner,
                          length < 0 ? MK_CONTENT_UNKNOWN : (uint64_t)length);
    return 0;
}

struct mk_content *mk_filter_origin(struct mk_content *c)
{
    while (c->source == &filter_source) {
        struct mk_filter_next *inner = c->source_ctx;
        c = &inner->content;
    }
    return c;
}
