/* SPDX-License-Identifier: Apache-2.0 */
/* A stream without a socket: it supplies the given bytes, accepts as much output as the test allows, and
 * records it. Independent of cmocka: fuzz targets also use it. */
#ifndef MK_UNIT_FAKE_STREAM_H
#define MK_UNIT_FAKE_STREAM_H

#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "event/stream.h"

enum { FAKE_STREAM_OUT_MAX = 1 << 22 };

struct fake_stream {
    struct mk_stream stream;
    mk_str in;           /* unread input */
    size_t read_max;     /* limit of a single read */
    bool in_ends;        /* EOF after `in`; otherwise -EAGAIN */
    struct mk_buf out;   /* output so far */
    const ssize_t *plan; /* results of the writes: byte limit or error; 0 ends the list */
    ssize_t otherwise;   /* result of the writes after the end of the plan */
    unsigned n_writes;   /* writes attempted */
    bool more;           /* flag of the last write */
    bool shut, closed;
};

static inline struct fake_stream *fake_stream_of(struct mk_stream *s)
{
    return MK_CONTAINER(s, struct fake_stream, stream);
}

static inline ssize_t fake_stream_read(struct mk_stream *s, char *buffer, size_t cap)
{
    struct fake_stream *f = fake_stream_of(s);
    MK_ASSERT(!f->closed);
    if (f->in.len == 0)
        return f->in_ends ? 0 : -EAGAIN;
    size_t n = mk_min(mk_min(cap, f->read_max), f->in.len);
    memcpy(buffer, f->in.p, n);
    f->in = mk_str_skip(f->in, n);
    return (ssize_t)n;
}

static inline ssize_t fake_stream_write(struct mk_stream *s, mk_str bytes, bool more)
{
    struct fake_stream *f = fake_stream_of(s);
    MK_ASSERT(!f->closed && !f->shut && bytes.len > 0);
    ssize_t n = f->plan && *f->plan ? *f->plan++ : f->otherwise;
    f->n_writes++;
    f->more = more;
    if (n < 0)
        return n;
    n = (ssize_t)mk_min((size_t)n, bytes.len);
    mk_buf_add(&f->out, mk_str_of(bytes.p, (size_t)n));
    return n;
}

static inline void fake_stream_shutdown(struct mk_stream *s)
{
    fake_stream_of(s)->shut = true;
}

static inline void fake_stream_close(struct mk_stream *s)
{
    MK_ASSERT(!fake_stream_of(s)->closed);
    fake_stream_of(s)->closed = true;
}

static const struct mk_stream_ops fake_stream_ops = {
    .read = fake_stream_read,
    .write = fake_stream_write,
    .shutdown = fake_stream_shutdown,
    .close = fake_stream_close,
};

/* Supplies `in` and accepts all output. */
static inline void fake_stream_init(struct fake_stream *f, mk_str in)
{
    *f = (struct fake_stream){.stream = {.ops = &fake_stream_ops, .fd = -1},
                              .in = in,
                              .read_max = SIZE_MAX,
                              .out = mk_buf_growing(FAKE_STREAM_OUT_MAX),
                              .otherwise = FAKE_STREAM_OUT_MAX};
}

static inline void fake_stream_fini(struct fake_stream *f)
{
    mk_buf_free(&f->out);
}

#endif
