/* SPDX-License-Identifier: Apache-2.0 */
#include "stream.h"

#include <errno.h>
#include <monkey/mem.h>

enum {
    ROOM = 16 * 1024,  /* size of the buffer for uncompressed input */
    PIECE = 64 * 1024, /* input bytes before the stream yields to other connections: a few milliseconds at
                        * most */
};

struct stream {
    struct pool *pool;
    struct mk_request *request;
    enum coding coding;
    void *coder;
    struct cached *copy; /* cache entry that gets a copy of the output; NULL: none */
    enum coder_op op;
    bool holds_back; /* the coder has consumed input that a flush would output */
    bool must_yield; /* the stream has compressed a PIECE, and yields to other connections */
    bool ended;
    const char *at; /* next input byte in `room` */
    size_t left;
    char room[ROOM];
};

static const struct coder_ops *stream_coder_ops(const struct stream *s)
{
    return compress_coders[s->coding];
}

/* ---- Lifetime ---- */

struct stream *compress_stream_new(struct pool *pool, struct mk_request *request, enum coding coding,
                                   int64_t length)
{
    struct stream *s = compress_pool_has_stream_slot(pool) ? mk_mem_alloc(sizeof *s) : NULL;
    if (!s)
        return NULL;
    s->pool = pool;
    s->request = request;
    s->coding = coding;
    s->copy = NULL;
    s->op = CODER_RUN;
    s->holds_back = s->must_yield = s->ended = false;
    s->at = s->room;
    s->left = 0;
    compress_pool_add_stream(pool);
    s->coder = compress_pool_acquire_coder(pool, coding, length);
    if (s->coder)
        return s;
    compress_stream_free(s);
    return NULL;
}

void compress_stream_cache_output(struct stream *s, struct cached *copy)
{
    s->copy = copy;
}

void compress_stream_free(struct stream *s)
{
    struct pool *pool = s->pool;
    if (s->copy)
        compress_cached_release(s->copy);
    compress_pool_release_coder(pool, s->coding, s->coder);
    mk_mem_free(s);
    compress_pool_remove_stream(pool);
}

static void close_stream(void *ctx)
{
    compress_stream_free(ctx);
}

/* ---- Compressing ---- */

/* Reads more input. Returns 1 if the coder has work to do, 0 if no input is available at the moment. */
static ssize_t read_input(struct stream *s, struct mk_filter_next *next, size_t *budget)
{
    if (*budget == 0) {
        s->must_yield = true;
        return 0;
    }
    ssize_t n = mk_filter_next_read(next, s->room, *budget < ROOM ? *budget : ROOM);
    if (n == -EAGAIN && !s->holds_back)
        return 0;
    if (n < 0 && n != -EAGAIN)
        return n;
    if (n <= 0)
        s->op = n ? CODER_FLUSH : CODER_END; /* flushes if the source has to wait for more data */
    s->at = s->room;
    s->left = n > 0 ? (size_t)n : 0;
    *budget -= s->left;
    return 1;
}

/* Returns 1 if the coder may have more work to do, else 0. */
static ssize_t run_coder(struct stream *s, struct coder_io *io)
{
    bool done = false;
    io->in = s->at;
    io->in_len = s->left;
    if (!stream_coder_ops(s)->run(s->coder, io, s->op, &done))
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

static void copy_to_cache(struct stream *s, mk_str bytes)
{
    if (s->copy && !compress_cached_append(s->copy, bytes)) {
        compress_cached_release(s->copy);
        s->copy = NULL;
    }
    if (s->copy && s->ended) {
        compress_cached_commit(s->copy);
        s->copy = NULL;
    }
}

static ssize_t yield_stream_to_loop(struct stream *s)
{
    if (s->must_yield)
        mk_request_resume(s->request);
    s->must_yield = false;
    return -EAGAIN;
}

static ssize_t read_compressed(void *ctx, struct mk_filter_next *next, char *buf, size_t cap)
{
    struct stream *s = ctx;
    struct coder_io io = {.out = buf, .out_cap = cap};
    size_t budget = PIECE;
    ssize_t goes_on = 1;
    if (s->ended)
        return 0;
    if (s->must_yield)
        return yield_stream_to_loop(s);
    while (goes_on > 0 && io.out_len < cap) {
        bool is_idle = s->op == CODER_RUN && s->left == 0;
        goes_on = is_idle ? read_input(s, next, &budget) : run_coder(s, &io);
    }
    if (goes_on < 0)
        return goes_on;
    if (io.out_len == 0 && !s->ended)
        return yield_stream_to_loop(s);
    copy_to_cache(s, mk_str_of(buf, io.out_len));
    return (ssize_t)io.out_len;
}

const struct mk_filter_ops compress_stream_ops = {.read = read_compressed, .close = close_stream};
