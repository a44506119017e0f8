/* SPDX-License-Identifier: Apache-2.0 */
#include <brotli/encode.h>
#include <monkey/mem.h>

#include "coder.h"
#include "heap.h"

enum {
    /* With a larger window, the tables grow out of proportion. With this window, a stream uses 1.0 MB up to
     * level 3, 1.9 MB up to level 8, and 2.6 MB at level 9. */
    WINDOW_BITS = 16,
    ROOM = 4 << 20,
};

/* Standard builds of the library call exit() when out of memory, so the coder allocates its memory in
 * advance. */
struct brotli {
    struct heap *room;
    BrotliEncoderState *state;
};

static void *alloc_for_brotli(void *buf, size_t size)
{
    return compress_heap_alloc(buf, size);
}

static void free_for_brotli(void *buf, void *p)
{
    compress_heap_free(buf, p);
}

static void close_brotli(void *coder)
{
    struct brotli *b = coder;
    if (b->state)
        BrotliEncoderDestroyInstance(b->state);
    compress_heap_destroy(b->room);
    mk_mem_free(b);
}

static void *open_brotli(unsigned level)
{
    struct brotli *b = mk_mem_zalloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->room = compress_heap_new(ROOM);
    b->state = b->room ? BrotliEncoderCreateInstance(alloc_for_brotli, free_for_brotli, b->room) : NULL;
    if (!b->state) {
        close_brotli(b);
        return NULL;
    }
    BrotliEncoderSetParameter(b->state, BROTLI_PARAM_QUALITY, level);
    BrotliEncoderSetParameter(b->state, BROTLI_PARAM_LGWIN, WINDOW_BITS);
    return b;
}

/* Does nothing: with a size hint, the library would allocate a table of 4 MB for long bodies. */
static bool ignore_size_hint(void *coder, int64_t length)
{
    (void)coder, (void)length;
    return true;
}

static bool run_brotli(void *coder, struct coder_io *io, enum coder_op op, bool *done)
{
    static const BrotliEncoderOperation operations[] = {[CODER_RUN] = BROTLI_OPERATION_PROCESS,
                                                        [CODER_FLUSH] = BROTLI_OPERATION_FLUSH,
                                                        [CODER_END] = BROTLI_OPERATION_FINISH};
    struct brotli *b = coder;
    size_t space = io->out_cap - io->out_len;
    const uint8_t *in = (const uint8_t *)io->in;
    uint8_t *out = (uint8_t *)io->out + io->out_len;
    bool ok = BrotliEncoderCompressStream(b->state, operations[op], &io->in_len, &in, &space, &out, NULL);
    io->in = (const char *)in;
    io->out_len = io->out_cap - space;
    if (op == CODER_END)
        *done = BrotliEncoderIsFinished(b->state);
    else
        *done = io->in_len == 0 && (op == CODER_RUN || !BrotliEncoderHasMoreOutput(b->state));
    return ok;
}

const struct coder_ops compress_brotli = {
    .name = "br", .open = open_brotli, .begin = ignore_size_hint, .run = run_brotli, .close = close_brotli};
