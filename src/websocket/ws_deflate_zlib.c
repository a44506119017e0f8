/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <monkey/mem.h>
#define ZLIB_CONST
#include <zlib.h>

#include "websocket/ws_deflate.h"

enum {
    LEVEL = 6,
    MEMORY_LEVEL = 8,
    WINDOW_BITS = 15, /* window size for inflating client messages, which may use any size */
    WINDOW = 1 << WINDOW_BITS,
    STEP = 4096, /* minimum output space per call */
    TAIL_LEN = 4,
    TABLES_FREE = 64,           /* number of blocks with dynamic Huffman codes allowed in every message,
                                 * whatever its length */
    TABLES_EVERY = 128,         /* message bytes that allow one more such block: no compressor produces
                                 * more blocks than that */
    TABLES_COST = 1024,         /* cost of building tables, in bytes that could be inflated in that time */
    END_COST = 64 * 1024,       /* cost of a final block: the window is saved and restored */
    HEAD_BITS_MAX = 3 + 7 + 32, /* block header without tables */
};

/* End of a compressed message, omitted when sending (RFC 7692, section 7.2.1). */
#define TAIL mk_str_of("\0\0\xff\xff", TAIL_LEN)

struct mk_ws_deflate {
    z_stream *deflater, *inflater;
    unsigned bits;
    unsigned window_len;
    unsigned char *window; /* window of an idle inflater */
};

static void *zlib_alloc(void *ctx, unsigned n, unsigned size)
{
    (void)ctx;
    return mk_mem_alloc((size_t)n * size);
}

static void zlib_free(void *ctx, void *p)
{
    (void)ctx;
    mk_mem_free(p);
}

bool mk_ws_deflate_is_supported(void)
{
    return true;
}

struct mk_ws_deflate *mk_ws_deflate_new(unsigned bits)
{
    struct mk_ws_deflate *c = mk_mem_zalloc(1, sizeof *c);
    if (c)
        c->bits = bits;
    return c;
}

static z_stream *new_stream(void)
{
    z_stream *z = mk_mem_zalloc(1, sizeof *z);
    if (z) {
        z->zalloc = zlib_alloc;
        z->zfree = zlib_free;
    }
    return z;
}

static void free_deflater(struct mk_ws_deflate *c)
{
    if (c->deflater)
        (void)deflateEnd(c->deflater);
    mk_mem_free(c->deflater);
    c->deflater = NULL;
}

static void free_inflater(struct mk_ws_deflate *c)
{
    if (c->inflater)
        (void)inflateEnd(c->inflater);
    mk_mem_free(c->inflater);
    c->inflater = NULL;
}

static void free_window(struct mk_ws_deflate *c)
{
    mk_mem_free(c->window);
    c->window = NULL;
}

void mk_ws_deflate_free(struct mk_ws_deflate *c)
{
    if (!c)
        return;
    free_deflater(c);
    free_inflater(c);
    free_window(c);
    mk_mem_free(c);
}

/* Reserves space after the output; false: `out` may not grow. */
static bool reserve_output(z_stream *z, struct mk_buf *out)
{
    if (out->len == out->max || !mk_buf_reserve(out, out->max - out->len < STEP ? out->max - out->len : STEP))
        return false;
    size_t buf = out->cap - out->len;
    z->next_out = (unsigned char *)out->p + out->len;
    z->avail_out = buf < UINT32_MAX ? (unsigned)buf : UINT32_MAX;
    return true;
}

static int output_error(const struct mk_buf *out)
{
    return out->len == out->max ? -EMSGSIZE : -ENOMEM;
}

/* ---- Compressing ---- */

static bool init_deflater(struct mk_ws_deflate *c, bool keeps)
{
    if (c->deflater)
        return keeps || deflateReset(c->deflater) == Z_OK;
    c->deflater = new_stream();
    if (c->deflater &&
        deflateInit2(c->deflater, LEVEL, Z_DEFLATED, -(int)c->bits, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK)
        return true;
    mk_mem_free(c->deflater);
    c->deflater = NULL;
    return false;
}

int mk_ws_deflate_compress(struct mk_ws_deflate *c, mk_str data, bool keeps, struct mk_buf *out)
{
    if (data.len > UINT32_MAX || !init_deflater(c, keeps))
        return -ENOMEM;
    z_stream *z = c->deflater;
    z->next_in = (const unsigned char *)data.p;
    z->avail_in = (unsigned)data.len;
    do {
        if (!reserve_output(z, out)) {
            mk_ws_deflate_reset_compression(c); /* the client will not receive this message */
            return output_error(out);
        }
        unsigned buf = z->avail_out;
        (void)deflate(z, Z_SYNC_FLUSH);
        out->len += buf - z->avail_out;
    } while (z->avail_out == 0);
    out->len -= TAIL_LEN;
    if (out->len == 0)
        mk_buf_add_char(out, 0);
    return 0;
}

void mk_ws_deflate_reset_compression(struct mk_ws_deflate *c)
{
    if (c->deflater && deflateReset(c->deflater) != Z_OK)
        free_deflater(c);
}

/* ---- Inflating ---- */

static bool init_inflater(struct mk_ws_deflate *c, bool keeps)
{
    if (c->inflater)
        return keeps || inflateReset(c->inflater) == Z_OK;
    c->inflater = new_stream();
    if (!c->inflater || inflateInit2(c->inflater, -WINDOW_BITS) != Z_OK) {
        mk_mem_free(c->inflater);
        c->inflater = NULL;
        return false;
    }
    if (keeps && c->window)
        (void)inflateSetDictionary(c->inflater, c->window, c->window_len);
    free_window(c);
    return true;
}

/* Cost of inflating one message. */
struct inflate_cost {
    uint64_t in, out;
    uint64_t block_at; /* bit position in the input where the current block begins */
    unsigned n_tables, n_ends;
};

static uint64_t input_bits_read(const struct inflate_cost *e, const z_stream *z)
{
    return 8 * (e->in - z->avail_in) - (unsigned)(z->data_type & 63);
}

/* Is the cost of the message acceptable? inflate() returns after each block header and each block (Z_TREES).
 * Many blocks with tables and little else cost a hundred times as much as their length warrants. */
static bool is_within_cost_limit(struct inflate_cost *e, const z_stream *z)
{
    uint64_t at = input_bits_read(e, z);
    if (z->data_type & 128)
        e->block_at = at;
    if (z->data_type & 256)
        e->n_tables += at - e->block_at > HEAD_BITS_MAX;
    return e->n_tables <= TABLES_FREE + (at / 8 + e->out) / TABLES_EVERY;
}

static uint64_t inflate_cost_bytes(const struct inflate_cost *e)
{
    return e->in + e->out + (uint64_t)e->n_tables * TABLES_COST + (uint64_t)e->n_ends * END_COST;
}

/* A final block ends the deflate stream, but not the window that messages may refer to. */
static bool restart_inflater(z_stream *z)
{
    unsigned len = 0;
    unsigned char *window = mk_mem_alloc(WINDOW);
    bool ok = window && inflateGetDictionary(z, window, &len) == Z_OK && inflateReset(z) == Z_OK &&
              (!len || inflateSetDictionary(z, window, len) == Z_OK);
    mk_mem_free(window);
    return ok;
}

/* A message may have at most one final block (RFC 7692, section 7.2.3.5). */
static int handle_final_block(struct inflate_cost *e, z_stream *z)
{
    if (++e->n_ends > 1)
        return -EBADMSG;
    e->block_at = input_bits_read(e, z);
    return restart_inflater(z) ? 0 : -ENOMEM;
}

/* Inflates all of `data`, a part of a message. */
static int inflate_piece(z_stream *z, struct inflate_cost *e, mk_str data, struct mk_buf *out)
{
    z->next_in = (const unsigned char *)data.p;
    z->avail_in = (unsigned)data.len;
    e->in += data.len;
    for (;;) {
        unsigned char beyond;
        bool full = out->len == out->max; /* the message may still end exactly here */
        if (full) {
            z->next_out = &beyond;
            z->avail_out = 1;
        } else if (!reserve_output(z, out)) {
            return -ENOMEM;
        }
        unsigned buf = z->avail_out;
        int before = z->data_type, r = inflate(z, Z_TREES);
        if (full && z->avail_out == 0)
            return -EMSGSIZE;
        out->len += full ? 0 : buf - z->avail_out;
        e->out += full ? 0 : buf - z->avail_out;
        if (r == Z_MEM_ERROR)
            return -ENOMEM;
        int error = r == Z_STREAM_END ? handle_final_block(e, z) : 0;
        if (error)
            return error;
        if ((r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR) || !is_within_cost_limit(e, z))
            return -EBADMSG;
        bool goes_on = r != Z_BUF_ERROR || z->data_type != before; /* bits of the last byte may be left */
        if (z->avail_in == 0 && z->avail_out > 0 && !goes_on)
            return 0;
    }
}

int mk_ws_deflate_decompress(struct mk_ws_deflate *c, mk_str data, bool keeps, struct mk_buf *out,
                             uint64_t *cost)
{
    struct inflate_cost inflate_cost = {0};
    if (data.len > UINT32_MAX || !init_inflater(c, keeps))
        return -ENOMEM;
    int e = inflate_piece(c->inflater, &inflate_cost, data, out);
    if (!e)
        e = inflate_piece(c->inflater, &inflate_cost, TAIL, out);
    *cost += inflate_cost_bytes(&inflate_cost);
    return e;
}

void mk_ws_deflate_release_memory(struct mk_ws_deflate *c, bool keeps)
{
    free_deflater(c);
    if (!c->inflater || !keeps) {
        free_inflater(c);
        return;
    }
    unsigned len = 0;
    (void)inflateGetDictionary(c->inflater, NULL, &len);
    c->window = len ? mk_mem_alloc(len) : NULL;
    if (len && (!c->window || inflateGetDictionary(c->inflater, c->window, &c->window_len) != Z_OK)) {
        free_window(c);
        return;
    }
    free_inflater(c);
}
