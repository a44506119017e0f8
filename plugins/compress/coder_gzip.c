/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/mem.h>
#define ZLIB_CONST
#include <zlib.h>

#include "coder.h"

/* A stream uses 264 KB: two windows of 32 KB, and the tables of memory level 8. */
enum { WINDOW_BITS = 15, GZIP_WRAPPER = 16, MEMORY_LEVEL = 8 };

static void *alloc_for_zlib(void *ctx, unsigned n, unsigned size)
{
    (void)ctx;
    return mk_mem_alloc((size_t)n * size);
}

static void free_for_zlib(void *ctx, void *p)
{
    (void)ctx;
    mk_mem_free(p);
}

static void *open_gzip(unsigned level)
{
    z_stream *z = mk_mem_zalloc(1, sizeof *z);
    if (!z)
        return NULL;
    z->zalloc = alloc_for_zlib;
    z->zfree = free_for_zlib;
    if (deflateInit2(z, (int)level, Z_DEFLATED, WINDOW_BITS + GZIP_WRAPPER, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) == Z_OK)
        return z;
    mk_mem_free(z);
    return NULL;
}

static bool begin_gzip(void *coder, int64_t length)
{
    (void)length;
    return deflateReset(coder) == Z_OK;
}

static bool run_gzip(void *coder, struct coder_io *io, enum coder_op op, bool *done)
{
    static const int flushes[] = {
        [CODER_RUN] = Z_NO_FLUSH, [CODER_FLUSH] = Z_SYNC_FLUSH, [CODER_END] = Z_FINISH};
    z_stream *z = coder;
    size_t space = io->out_cap - io->out_len;
    z->next_in = (const unsigned char *)io->in;
    z->avail_in = (unsigned)io->in_len;
    z->next_out = (unsigned char *)io->out + io->out_len;
    z->avail_out = (unsigned)space;
    int r = deflate(z, flushes[op]);
    io->in += io->in_len - z->avail_in;
    io->in_len = z->avail_in;
    io->out_len += space - z->avail_out;
    if (op == CODER_END)
        *done = r == Z_STREAM_END;
    else
        *done = io->in_len == 0 && (op == CODER_RUN || z->avail_out > 0);
    return r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR; /* Z_BUF_ERROR: nothing to do */
}

static void close_gzip(void *coder)
{
    (void)deflateEnd(coder);
    mk_mem_free(coder);
}

const struct coder_ops compress_gzip = {.name = "gzip",
                                        .open = open_gzip,
                                        .begin = begin_gzip,
                                        .run = run_gzip,
                                        .close = close_gzip,
                                        .is_reusable = true};
