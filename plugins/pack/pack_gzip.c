/* SPDX-License-Identifier: Apache-2.0 */
#include "pack_gzip.h"

#include <zlib.h>

enum { GZIP_WINDOW_BITS = 15 + 16, GZIP_MEMORY_LEVEL = 9, GZIP_CONTENT_MAX = 1 << 30 };

static bool deflate_content(z_stream *z, mk_str content, struct mk_buf *out)
{
    if (!mk_buf_reserve(out, deflateBound(z, (uLong)content.len)))
        return false;
    z->next_in = (Bytef *)(uintptr_t)content.p;
    z->avail_in = (uInt)content.len;
    z->next_out = (Bytef *)out->p;
    z->avail_out = (uInt)out->cap;
    bool ok = deflate(z, Z_FINISH) == Z_STREAM_END;
    out->len = out->cap - z->avail_out;
    return ok;
}

bool pack_gzip(mk_str content, struct mk_buf *out)
{
    z_stream z = {0};
    if (content.len > GZIP_CONTENT_MAX)
        return false;
    if (deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        out->failed = true;
        return false;
    }
    bool ok = deflate_content(&z, content, out);
    deflateEnd(&z);
    return ok && out->len <= content.len - content.len / 10;
}
