/* SPDX-License-Identifier: Apache-2.0 */
/* gzip (RFC 1952): packing and unpacking, by zlib. In monkey-duda-gzip.so. */
#ifndef DUDA_GZIP_H
#define DUDA_GZIP_H

#include <monkey/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * For files, mail and other servers: what a client gets is packed by the plugin `compress`, without a line of
 * code. All functions of this file may be called from any thread; large texts belong into one (duda_offload()),
 * for packing a megabyte takes some 20 ms.
 */

/** Appends `data` as gzip. `level` is 1 (fast) to 9 (small); 0 means 6. 0; -EINVAL: there is no such level;
 * -ENOMEM: memory is out, or `out` has no room for it. */
MK_API int duda_gzip(struct mk_buf *out, mk_str data, int level) MK_API_MUST_USE;

/**
 * Appends what `data` was before it was packed; several gzip texts one behind the other are one. The limit is
 * that of `out`: a kilobyte may unpack to a megabyte, so never leave it out. 0; -EBADMSG: it is not gzip, is
 * damaged, ends too early, or something else follows; -EFBIG: it does not fit into `out`; -ENOMEM. After an
 * error `out` holds what came before it.
 *
 *     struct mk_buf text = mk_buf_growing(1 << 20);
 *     int e = duda_gunzip(&text, content);
 */
MK_API int duda_gunzip(struct mk_buf *out, mk_str data) MK_API_MUST_USE;

/* ---- Piece by piece ---- */

/** A text that is packed or unpacked piece by piece. For one thread at a time. */
struct duda_gzip_stream;

/** Packs. NULL: memory is out, or there is no such level. */
MK_API struct duda_gzip_stream *duda_gzip_new(int level) MK_API_MUST_USE;
/** Unpacks. NULL: memory is out. */
MK_API struct duda_gzip_stream *duda_gunzip_new(void) MK_API_MUST_USE;
/** Frees it. NULL is fine. */
MK_API void duda_gzip_free(struct duda_gzip_stream *z);

/**
 * Takes bytes from *in, moving it behind them, and appends at most `most` bytes to `out`. `is_last`: nothing
 * follows what is in *in. 1: there is more to write, call again; 0: all of *in was taken and, if it was the
 * last, all is written; or a negated errno value: -EBADMSG and -EFBIG as above, -ENOMEM.
 *
 *     while ((n = read_more(room, sizeof room)) >= 0) {
 *         mk_str in = mk_str_of(room, (size_t)n);
 *         do {
 *             mk_buf_clear(&out);
 *             more = duda_gzip_step(z, &in, n == 0, &out, 16384);
 *             if (more >= 0 && (e = duda_write(d, mk_buf_str(&out))))
 *                 return e;
 *         } while (more == 1);
 *         if (more < 0 || n == 0)
 *             break;
 *     }
 */
MK_API int duda_gzip_step(struct duda_gzip_stream *z, mk_str *in, bool is_last, struct mk_buf *out,
                          size_t most) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
