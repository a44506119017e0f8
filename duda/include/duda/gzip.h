/* SPDX-License-Identifier: Apache-2.0 */
/* Compression and decompression of gzip (RFC 1952), and decompression of deflate, with zlib. In
 * monkey-duda-gzip.so. */
#ifndef DUDA_GZIP_H
#define DUDA_GZIP_H

#include <monkey/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Use these functions for files, mail and other servers; the plugin `compress` compresses HTTP responses. All
 * functions in this file are thread-safe. Process large data in a thread (duda_offload()): compressing a
 * megabyte takes about 20 ms.
 */

/**
 * Appends `data` in gzip format. `level` is 1 (fast) to 9 (small); 0 means 6. Returns 0; -EINVAL: invalid
 * level; -ENOMEM: memory is exhausted, or `out` is full.
 *
 *     int e = duda_gzip(&out, text, 6);
 *     e = e ? e : duda_header_set(d, "Content-Encoding", MK_STR("gzip"));
 *     return e ? e : duda_write(d, mk_buf_str(&out));
 */
MK_API int duda_gzip(struct mk_buf *out, mk_str data, int level) MK_API_MUST_USE;

/**
 * Decompresses `data` and appends the result; concatenated gzip members are decompressed as one. Always limit
 * the size of `out`: a kilobyte may decompress to a megabyte. Returns 0; -EBADMSG: not gzip, corrupt,
 * truncated, or followed by other data; -EMSGSIZE: the result exceeds the limit of `out`; -ENOMEM. After an
 * error, `out` holds the data decompressed so far.
 *
 *     struct mk_buf text = mk_buf_growing(1 << 20);
 *     int e = duda_gunzip(&text, content);
 */
MK_API int duda_gunzip(struct mk_buf *out, mk_str data) MK_API_MUST_USE;

/* ---- Streaming ---- */

/** A compression or decompression stream. Use it in one thread at a time. */
struct duda_gzip_stream;

/** Creates a compressor; NULL if memory is exhausted or the level is invalid. */
MK_API struct duda_gzip_stream *duda_gzip_new(int level) MK_API_MUST_USE;
/** Creates a decompressor; NULL if memory is exhausted. */
MK_API struct duda_gzip_stream *duda_gunzip_new(void) MK_API_MUST_USE;
/** Creates a decompressor for `deflate` of HTTP: a zlib stream (RFC 1950), or a raw deflate stream (RFC
 * 1951), which some servers send instead. NULL if memory is exhausted. */
MK_API struct duda_gzip_stream *duda_inflate_new(void) MK_API_MUST_USE;
/** Frees the stream; NULL is allowed. */
MK_API void duda_gzip_free(struct duda_gzip_stream *stream);

/**
 * Consumes bytes from *in, advancing it, and appends at most `max_out` bytes to `out`. `is_last`: *in holds
 * the end of the input. Returns 1: more output is pending, so call again; 0: all of *in was consumed and, if
 * it was the last input, all output was written; or a negative errno value: -EBADMSG and -EMSGSIZE as above,
 * -ENOMEM.
 *
 *     while ((n = read_more(buf, sizeof buf)) >= 0) {
 *         mk_str in = mk_str_of(buf, (size_t)n);
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
MK_API int duda_gzip_step(struct duda_gzip_stream *stream, mk_str *in, bool is_last, struct mk_buf *out,
                          size_t max_out) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
