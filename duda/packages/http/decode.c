/* SPDX-License-Identifier: Apache-2.0 */
#include "decode.h"

#include <duda/gzip.h>
#include <errno.h>
#include <monkey/mem.h>

enum { INPUT_SIZE = 8 * 1024 };

struct http_decoder {
    struct duda_gzip_stream *stream;
    mk_str input; /* bytes of `buf` that are not decoded yet */
    bool has_input;
    bool has_end;  /* `input` holds the last bytes */
    bool has_more; /* more output is pending */
    char buf[INPUT_SIZE];
};

mk_str http_decoder_codings(void)
{
    return MK_STR("gzip, deflate");
}

static bool is_gzip(mk_str coding)
{
    return mk_str_eq_nocase(coding, MK_STR("gzip")) || mk_str_eq_nocase(coding, MK_STR("x-gzip"));
}

bool http_decoder_knows(mk_str coding)
{
    return is_gzip(coding) || mk_str_eq_nocase(coding, MK_STR("deflate"));
}

struct http_decoder *http_decoder_new(mk_str coding)
{
    struct http_decoder *d = mk_mem_zalloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->stream = is_gzip(coding) ? duda_gunzip_new() : duda_inflate_new();
    if (d->stream)
        return d;
    mk_mem_free(d);
    return NULL;
}

void http_decoder_free(struct http_decoder *d)
{
    if (!d)
        return;
    duda_gzip_free(d->stream);
    mk_mem_free(d);
}

/* Decodes the input into `out`. A response without content has an empty body, which is valid. */
static int decode_input(struct http_decoder *d, struct mk_buf *out)
{
    if (!d->has_input || (!d->input.len && !d->has_more && !d->has_end))
        return 0;
    int more = duda_gzip_step(d->stream, &d->input, d->has_end, out, out->cap);
    d->has_more = more == 1;
    return more == -EBADMSG ? -EILSEQ : more < 0 ? more : 0;
}

ssize_t http_decoder_read(struct http_decoder *d, ssize_t (*read)(void *ctx, char *buf, size_t cap),
                          void *ctx, char *buf, size_t cap)
{
    struct mk_buf out = mk_buf_fixed(buf, cap);
    if (!cap)
        return 0;
    for (;;) {
        int e = decode_input(d, &out);
        if (e)
            return e;
        if (out.len || (d->has_end && !d->has_more))
            return (ssize_t)out.len;
        if (d->has_more)
            continue;
        ssize_t n = read(ctx, d->buf, sizeof d->buf);
        if (n < 0)
            return n;
        d->input = mk_str_of(d->buf, (size_t)n);
        d->has_input |= n > 0;
        d->has_end = n == 0;
    }
}
