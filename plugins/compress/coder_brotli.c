/* SPDX-License-Identifier: Apache-2.0 */
#include <brotli/encode.h>
#include <monkey/mem.h>

#include "coder.h"

/* A larger window makes the tables grow far beyond it: with this one a stream takes 1.0 MB up to level 3, 1.9
 * MB up to 8, and 2.6 MB. */
enum { WINDOW_BITS = 16 };

static void *alloc(void *ctx, size_t size)
{
    (void)ctx;
    return mk_mem_alloc(size);
}

static void give_back(void *ctx, void *p)
{
    (void)ctx;
    mk_mem_free(p);
}

static void *open_brotli(unsigned level)
{
    BrotliEncoderState *b = BrotliEncoderCreateInstance(alloc, give_back, NULL);
    if (!b)
        return NULL;
    BrotliEncoderSetParameter(b, BROTLI_PARAM_QUALITY, level);
    BrotliEncoderSetParameter(b, BROTLI_PARAM_LGWIN, WINDOW_BITS);
    return b;
}

static bool begin(void *coder, int64_t length)
{
    if (length > 0)
        BrotliEncoderSetParameter(coder, BROTLI_PARAM_SIZE_HINT,
                                  length < 1 << 30 ? (uint32_t)length : 1 << 30);
    return true;
}

static bool run(void *coder, struct coder_io *io, enum coder_op op, bool *done)
{
    static const BrotliEncoderOperation operations[] = {[CODER_RUN] = BROTLI_OPERATION_PROCESS,
                                                        [CODER_FLUSH] = BROTLI_OPERATION_FLUSH,
                                                        [CODER_END] = BROTLI_OPERATION_FINISH};
    size_t room = io->out_cap - io->out_len;
    const uint8_t *in = (const uint8_t *)io->in;
    uint8_t *out = (uint8_t *)io->out + io->out_len;
    bool ok = BrotliEncoderCompressStream(coder, operations[op], &io->in_len, &in, &room, &out, NULL);
    io->in = (const char *)in;
    io->out_len = io->out_cap - room;
    if (op == CODER_END)
        *done = BrotliEncoderIsFinished(coder);
    else
        *done = io->in_len == 0 && (op == CODER_RUN || !BrotliEncoderHasMoreOutput(coder));
    return ok;
}

static void close_brotli(void *coder)
{
    BrotliEncoderDestroyInstance(coder);
}

const struct coder_ops compress_brotli = {
    .name = "br", .open = open_brotli, .begin = begin, .run = run, .close = close_brotli};
