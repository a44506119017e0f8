/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are decompressed within the limit or rejected, regardless of how they are split. */
#include <duda/gzip.h>
#include <errno.h>

#include "base/assert.h"

enum { MAX = 1 << 16, PIECE = 5, MOST = 100 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_buf whole = mk_buf_growing(MAX), parts = mk_buf_growing(2 * MAX);
    mk_str in = mk_str_of((const char *)data, size);
    int e = duda_gunzip(&whole, in), more = 0;
    MK_ASSERT(e == 0 || e == -EBADMSG || e == -EMSGSIZE || e == -ENOMEM);
    MK_ASSERT(whole.len <= MAX);
    struct duda_gzip_stream *z = duda_gunzip_new();
    do {
        mk_str piece = mk_str_first(in, in.len < PIECE ? in.len : PIECE);
        in = mk_str_skip(in, piece.len);
        while ((more = duda_gzip_step(z, &piece, !in.len, &parts, MOST)) == 1)
            ;
    } while (!more && in.len);
    duda_gzip_free(z);
    if (e == 0)
        MK_ASSERT(!more && mk_str_eq(mk_buf_str(&whole), mk_buf_str(&parts)));
    else if (e == -EBADMSG)
        MK_ASSERT(more == -EBADMSG);
    mk_buf_free(&whole);
    mk_buf_free(&parts);
    return 0;
}
