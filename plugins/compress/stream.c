/* SPDX-License-Identifier: Apache-2.0 */
#include "stream.h"

#include <errno.h>
#include <monkey/mem.h>

enum {
    ROOM = 16 * 1024,  /* for what was pulled and is not compressed yet */
    PIECE = 64 * 1024, /* so much is compressed; then others have their turn: a few milliseconds at most */
};

struct stream {
    struct pool *pool;
    struct mk_request *request;
    enum coding coding;
    void *coder;
    struct cached *copy; /* NULL: none is made */
    enum coder_op op;
    bool holds_back; /* the coder has taken something that a flush would give */
    bool tired;      /* it has done its piece: somebody else's turn */
    bool ended;
    const char *at; /* in room */
    size_t left;
    char room[ROOM];
};

/* ---- Coders ---- */

static const struct coder_ops *ops_of(const struct stream *s)
{
    return compress_coders[s->coding];
}

static bool take_coder(struct stream *s, int64_t length)
{
    void **idle = &s->pool->idle[s->coding];
    s->coder = *idle ? *idle : ops_of(s)->open(s->pool->settings->levels[s->coding]);
    *idle = NULL;
    if (s->coder && !ops_of(s)->begin(s->coder, length)) {
        ops_of(s)->close(s->coder);
        s->coder = NULL;
    }
    return s->coder != NULL;
}

static void drop_coder(struct stream *s)
{
    void **idle = &s->pool->idle[s->coding];
    if (s->coder && ops_of(s)->is_reusable && !*idle)
        *idle = s->coder;
    else if (s->coder)
        ops_of(s)->close(s->coder);
}

void compress_pool_fini(struct pool *p)
{
    for (size_t i = 0; i < CODINGS; i++)
        if (p->idle[i])
            compress_coders[i]->close(p->idle[i]);
    compress_cache_free(p->cache);
}

/* ---- Life ---- */

struct stream *compress_stream_new(struct pool *pool, struct mk_request *request, enum coding coding,
                                   int64_t length)
{
    struct stream *s = pool->n_streams < pool->settings->max_streams ? mk_mem_alloc(sizeof *s) : NULL;
    if (!s)
        return NULL;
    s->pool = pool;
    s->request = request;
    s->coding = coding;
    s->coder = NULL;
    s->copy = NULL;
    s->op = CODER_RUN;
    s->holds_back = s->tired = s->ended = false;
    s->at = s->room;
    s->left = 0;
    pool->n_streams++;
    if (take_coder(s, length))
        return s;
    compress_stream_free(s);
    return NULL;
}

void compress_stream_keep_in(struct stream *s, struct cached *copy)
{
    s->copy = copy;
}

void compress_stream_free(struct stream *s)
{
    s->pool->n_streams--;
    if (s->copy)
        compress_cached_drop(s->copy);
    drop_coder(s);
    mk_mem_free(s);
}

static void on_close(void *ctx)
{
    compress_stream_free(ctx);
}

/* ---- Compressing ---- */

/* More to compress, or why it is time for something else. 1: there is something to do; 0: not now. */
static ssize_t fetch(struct stream *s, struct mk_upstream *up, size_t *budget)
{
    if (*budget == 0) {
        s->tired = true;
        return 0;
    }
    ssize_t n = mk_upstream_pull(up, s->room, *budget < ROOM ? *budget : ROOM);
    if (n == -EAGAIN && !s->holds_back)
        return 0;
    if (n < 0 && n != -EAGAIN)
        return n;
    if (n <= 0)
        s->op = n ? CODER_FLUSH : CODER_END; /* who waits shall not wait for what is here already */
    s->at = s->room;
    s->left = n > 0 ? (size_t)n : 0;
    *budget -= s->left;
    return 1;
}

/* 1: there may be more to do; 0: not now. */
static ssize_t work(struct stream *s, struct coder_io *io)
{
    bool done = false;
    io->in = s->at;
    io->in_len = s->left;
    if (!ops_of(s)->run(s->coder, io, s->op, &done))
        return -EIO;
    s->holds_back |= s->left > 0;
    s->at = io->in;
    s->left = io->in_len;
    if (!done || s->op == CODER_RUN)
        return 1;
    s->ended = s->op == CODER_END;
    s->holds_back = false;
    s->op = CODER_RUN;
    return 0;
}

static void copy_out(struct stream *s, mk_str bytes)
{
    if (s->copy && !compress_cached_add(s->copy, bytes)) {
        compress_cached_drop(s->copy);
        s->copy = NULL;
    }
    if (s->copy && s->ended) {
        compress_cached_keep(s->copy);
        s->copy = NULL;
    }
}

static ssize_t rest(struct stream *s)
{
    if (s->tired)
        mk_request_resume(s->request);
    s->tired = false;
    return -EAGAIN;
}

static ssize_t pull(void *ctx, struct mk_upstream *up, char *room, size_t cap)
{
    struct stream *s = ctx;
    struct coder_io io = {.out = room, .out_cap = cap};
    size_t budget = PIECE;
    ssize_t goes_on = 1;
    if (s->ended)
        return 0;
    if (s->tired)
        return rest(s);
    while (goes_on > 0 && io.out_len < cap) {
        bool is_idle = s->op == CODER_RUN && s->left == 0;
        goes_on = is_idle ? fetch(s, up, &budget) : work(s, &io);
    }
    if (goes_on < 0)
        return goes_on;
    if (io.out_len == 0 && !s->ended)
        return rest(s);
    copy_out(s, mk_str_of(room, io.out_len));
    return (ssize_t)io.out_len;
}

const struct mk_filter_ops compress_stream_ops = {.pull = pull, .close = on_close};
