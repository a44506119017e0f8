/* SPDX-License-Identifier: Apache-2.0 */
/* HPACK (RFC 7541). Decoding is stateful, and done by a library; encoding is stateless: nothing is ever added
 * to the peer's dynamic table, so an encoded header is valid on every connection. */
#ifndef MK_HTTP2FRAME_HPACK_H
#define MK_HTTP2FRAME_HPACK_H

#include "base/buf.h"
#include "base/err.h"

/* ---- Decoding ---- */

struct mk_hpack_decoder;

/* Name and version of the decoder library. */
extern const char mk_hpack_library[];

/* Creates a decoder for one connection, with a table of at most 4096 bytes. NULL: out of memory. */
struct mk_hpack_decoder *mk_hpack_decoder_new(void);
void mk_hpack_decoder_free(struct mk_hpack_decoder *h);

/* Called for each header; name and value are valid during the call. A result other than 0 skips this and all
 * later headers: the rest of the block is still decoded, without calls, to keep the table in sync. */
typedef int mk_hpack_on_header(void *ctx, mk_str name, mk_str value);

/* Decodes a complete block. 0: all headers were reported. -EBADMSG: malformed; the connection must be closed.
 * -ENOMEM: out of memory. -ECANCELED: the callback returned nonzero. */
mk_err mk_hpack_decode(struct mk_hpack_decoder *h, mk_str block, mk_hpack_on_header *on_field,
                       void *ctx) MK_MUST_USE;

/* ---- Encoding; as always with a mk_buf, overflow is recorded in out->failed ---- */

void mk_hpack_encode_status(struct mk_buf *out, unsigned status);
/* Encodes a header. The name may be in upper or lower case. */
void mk_hpack_encode(struct mk_buf *out, mk_str name, mk_str value);
/* Like mk_hpack_encode(), but for a value that intermediaries must not index (RFC 7541, section 7.1.3), such
 * as Set-Cookie. */
void mk_hpack_encode_never_indexed(struct mk_buf *out, mk_str name, mk_str value);
void mk_hpack_encode_num(struct mk_buf *out, mk_str name, uint64_t value);

#endif
