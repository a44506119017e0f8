/* SPDX-License-Identifier: Apache-2.0 */
#include <duda/gzip.h>

#include <errno.h>
#include <limits.h>
#include <monkey/mem.h>
#define ZLIB_CONST
#include <zlib.h>

enum {
    GZIP_ALONE = 15 + 16,
    ZLIB_ALONE = 15,
    RAW_DEFLATE = -15,
    MEMORY_LEVEL = 8,
    LEVEL_DEFAULT = 6,
    LEVEL_MAX = 9,
    STEP = 64 * 1024
};

struct duda_gzip_stream {
    z_stream z;
    bool packs;
    bool is_deflate;   /* decompression: a zlib or raw stream, without members */
    bool is_in_member; /* decompression: the input is inside a member */
    bool has_member;   /* decompression: at least one member has ended */
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

static struct duda_gzip_stream *gzip_stream_new(bool packs, int level)
{
    struct duda_gzip_stream *s = mk_mem_zalloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->packs = packs;
    s->z.zalloc = zlib_alloc;
    s->z.zfree = zlib_free;
    int r = packs ? deflateInit2(&s->z, level ? level : LEVEL_DEFAULT, Z_DEFLATED, GZIP_ALONE, MEMORY_LEVEL,
                                 Z_DEFAULT_STRATEGY)
                  : inflateInit2(&s->z, GZIP_ALONE);
    if (r == Z_OK)
        return s;
    mk_mem_free(s);
    return NULL;
}

struct duda_gzip_stream *duda_inflate_new(void)
{
    struct duda_gzip_stream *s = gzip_stream_new(false, 0);
    if (s)
        s->is_deflate = true;
    return s;
}

static bool is_valid_level(int level)
{
    return level >= 0 && level <= LEVEL_MAX;
}

struct duda_gzip_stream *duda_gzip_new(int level)
{
    return is_valid_level(level) ? gzip_stream_new(true, level) : NULL;
}

struct duda_gzip_stream *duda_gunzip_new(void)
{
    return gzip_stream_new(false, 0);
}

void duda_gzip_free(struct duda_gzip_stream *s)
{
    if (!s)
        return;
    (void)(s->packs ? deflateEnd(&s->z) : inflateEnd(&s->z));
    mk_mem_free(s);
}

static int deflate_step(struct duda_gzip_stream *s, bool is_last)
{
    int r = deflate(&s->z, is_last ? Z_FINISH : Z_NO_FLUSH);
    if (r == Z_STREAM_ERROR)
        return -EINVAL;
    return is_last ? r != Z_STREAM_END : s->z.avail_in || !s->z.avail_out;
}

/* Chooses the format by the first byte: the method and the window size of a zlib header. In a raw stream,
 * this byte would begin a stored block with padding bits that are not zero. */
static bool choose_deflate_format(struct duda_gzip_stream *s)
{
    bool is_zlib = (s->z.next_in[0] & 0x0f) == Z_DEFLATED && s->z.next_in[0] >> 4 <= 7;
    return inflateReset2(&s->z, is_zlib ? ZLIB_ALONE : RAW_DEFLATE) == Z_OK;
}

static int inflate_step(struct duda_gzip_stream *s, bool is_last)
{
    if (s->is_deflate && s->z.avail_in && !s->has_member && !choose_deflate_format(s))
        return -ENOMEM;
    if (s->is_deflate && s->z.avail_in && s->has_member && !s->is_in_member)
        return -EBADMSG; /* data after the end */
    if (s->z.avail_in)
        s->is_in_member = s->has_member = true;
    int r = s->is_in_member ? inflate(&s->z, Z_NO_FLUSH) : Z_BUF_ERROR;
    if (r == Z_MEM_ERROR)
        return -ENOMEM;
    if (r == Z_STREAM_END) {
        s->is_in_member = false; /* another member may follow */
        return inflateReset(&s->z) == Z_OK ? s->z.avail_in > 0 : -EBADMSG;
    }
    if (r != Z_OK && r != Z_BUF_ERROR)
        return -EBADMSG;
    if (s->z.avail_in || !s->z.avail_out)
        return 1;
    return is_last && (s->is_in_member || !s->has_member) ? -EBADMSG : 0;
}

int duda_gzip_step(struct duda_gzip_stream *s, mk_str *in, bool is_last, struct mk_buf *out, size_t most)
{
    size_t n_in = in->len < UINT_MAX ? in->len : UINT_MAX;
    size_t had = out->len, limit = out->max ? out->max : out->cap;
    size_t size = limit - had < most ? limit - had : most;
    size = size < UINT_MAX ? size : UINT_MAX;
    if (!most)
        return -EINVAL;
    if (size && !mk_buf_reserve(out, size))
        return -ENOMEM;
    char none;
    s->z.next_in = (const unsigned char *)in->p;
    s->z.avail_in = (unsigned)n_in;
    s->z.next_out = (unsigned char *)(size ? out->p + had : &none);
    s->z.avail_out = (unsigned)size;
    bool ends = is_last && n_in == in->len;
    int r = s->packs ? deflate_step(s, ends) : inflate_step(s, ends);
    size_t written = size - s->z.avail_out;
    *in = mk_str_skip(*in, n_in - s->z.avail_in);
    out->len += written;
    if (r == 1 && out->len == limit && !written && n_in - s->z.avail_in == 0)
        return -EMSGSIZE;
    return r == 0 && in->len ? 1 : r;
}

static int run_stream_to_end(struct duda_gzip_stream *s, struct mk_buf *out, mk_str data)
{
    int more = 1;
    if (!s)
        return -ENOMEM;
    while (more == 1)
        more = duda_gzip_step(s, &data, true, out, STEP);
    duda_gzip_free(s);
    return more;
}

int duda_gzip(struct mk_buf *out, mk_str data, int level)
{
    if (!is_valid_level(level))
        return -EINVAL;
    int e = run_stream_to_end(duda_gzip_new(level), out, data);
    return e == -EMSGSIZE ? -ENOMEM : e;
}

int duda_gunzip(struct mk_buf *out, mk_str data)
{
    return run_stream_to_end(duda_gunzip_new(), out, data);
}
