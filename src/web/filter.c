/* SPDX-License-Identifier: Apache-2.0 */
#include "web/filter.h"

#include "web/response.h"

/* In the arena of the request. */
struct mk_upstream {
    const struct mk_filter_ops *ops;
    void *ctx;
    struct mk_content content;
    uint64_t left; /* of it; MK_CONTENT_UNKNOWN */
    mk_err broken; /* what every pull answers from now on */
    bool ended;
};

/* Once it has ended or failed, the content below is not pulled again. */
static void note(struct mk_upstream *up, ssize_t n)
{
    up->ended = n == 0;
    up->broken = n < 0 ? (mk_err)n : 0;
    if (n > 0 && up->left != MK_CONTENT_UNKNOWN)
        up->left -= (uint64_t)n;
}

ssize_t mk_upstream_pull(struct mk_upstream *up, char *room, size_t cap)
{
    if (up->broken || up->ended)
        return up->broken;
    if (cap == 0)
        return -EINVAL;
    if (up->left < cap)
        cap = (size_t)up->left;
    ssize_t n = cap ? mk_content_pull(&up->content, room, cap) : 0;
    if (n == -EAGAIN)
        return n;
    bool too_short = n == 0 && up->left > 0 && up->left != MK_CONTENT_UNKNOWN;
    if (too_short || n > (ssize_t)cap)
        n = -EIO;
    note(up, n);
    return n;
}

static ssize_t pull(void *ctx, char *room, size_t cap)
{
    struct mk_upstream *up = ctx;
    return up->ops->pull(up->ctx, up, room, cap);
}

static void close_all(void *ctx)
{
    struct mk_upstream *up = ctx;
    if (up->ops->close)
        up->ops->close(up->ctx);
    mk_content_fini(&up->content);
}

static const struct mk_source_ops filter_source = {.pull = pull, .close = close_all};

int mk_response_add_filter(struct mk_response *r, const struct mk_filter_ops *ops, void *ctx, int64_t length)
{
    bool odd =
        length < MK_LENGTH_UNKNOWN || mk_content_is_raw(&r->content) || mk_content_is_tunnel(&r->content);
    struct mk_upstream *up = r->sealed || odd ? NULL : mk_arena_alloc(r->arena, sizeof *up);
    if (!up) {
        if (ops->close)
            ops->close(ctx);
        return r->sealed ? -EALREADY : odd ? -EINVAL : -ENOMEM;
    }
    up->ops = ops;
    up->ctx = ctx;
    up->left = r->content.length;
    up->broken = 0;
    up->ended = false;
    mk_content_move(&up->content, &r->content);
    mk_response_unready(r);
    mk_content_set_source(&r->content, &filter_source, up,
                          length < 0 ? MK_CONTENT_UNKNOWN : (uint64_t)length);
    return 0;
}

struct mk_content *mk_filter_origin(struct mk_content *c)
{
    while (c->source == &filter_source) {
        struct mk_upstream *up = c->source_ctx;
        c = &up->content;
    }
    return c;
}
