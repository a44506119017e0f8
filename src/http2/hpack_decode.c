/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding with libnghttp2: the only file that uses it. */
#include <nghttp2/nghttp2.h>

#include "base/mem.h"
#include "http2/hpack.h"

static void *nghttp2_alloc(size_t size, void *unused)
{
    (void)unused;
    return mk_mem_alloc(size);
}

static void *nghttp2_zalloc(size_t n, size_t size, void *unused)
{
    (void)unused;
    return mk_mem_zalloc(n, size);
}

static void *nghttp2_resize(void *old, size_t size, void *unused)
{
    (void)unused;
    return mk_mem_realloc(old, size);
}

static void nghttp2_release(void *p, void *unused)
{
    (void)unused;
    mk_mem_free(p);
}

/* Decoders keep a pointer to this struct. */
static nghttp2_mem heap = {
    .malloc = nghttp2_alloc, .free = nghttp2_release, .calloc = nghttp2_zalloc, .realloc = nghttp2_resize};

/* An mk_hpack_decoder is the library's inflater. */
static nghttp2_hd_inflater *inflater_of(struct mk_hpack_decoder *h)
{
    return (nghttp2_hd_inflater *)h;
}

const char mk_hpack_library[] = "nghttp2 " NGHTTP2_VERSION;

/* Keeps the library's default table limit of 4096, which a peer assumes without SETTINGS. */
struct mk_hpack_decoder *mk_hpack_decoder_new(void)
{
    nghttp2_hd_inflater *inflater;
    return nghttp2_hd_inflate_new2(&inflater, &heap) ? NULL : (struct mk_hpack_decoder *)inflater;
}

void mk_hpack_decoder_free(struct mk_hpack_decoder *h)
{
    if (h)
        nghttp2_hd_inflate_del(inflater_of(h));
}

static mk_str str_of_bytes(const uint8_t *p, size_t len)
{
    return mk_str_of((const char *)p, len);
}

mk_err mk_hpack_decode(struct mk_hpack_decoder *h, mk_str block, mk_hpack_on_header *on_field, void *ctx)
{
    const uint8_t *at = (const uint8_t *)(block.p ? block.p : "");
    size_t left = block.len;
    bool is_wanted = true;
    for (int flags = 0; !(flags & NGHTTP2_HD_INFLATE_FINAL);) {
        nghttp2_nv field;
        ssize_t used = nghttp2_hd_inflate_hd2(inflater_of(h), &field, &flags, at, left, 1);
        if (used < 0)
            return used == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EBADMSG;
        at += used;
        left -= (size_t)used;
        if (flags & NGHTTP2_HD_INFLATE_EMIT && is_wanted)
            is_wanted = !on_field(ctx, str_of_bytes(field.name, field.namelen),
                                  str_of_bytes(field.value, field.valuelen));
    }
    nghttp2_hd_inflate_end_headers(inflater_of(h));
    return is_wanted ? 0 : -ECANCELED;
}
