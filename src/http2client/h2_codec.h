/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 codec: writes the frames of a request without a stream identifier, and parses the records of its
 * response; see h2_session_stream.h. A request that is sent again gets another identifier, but the same
 * frames, because an encoded header block is valid in every session. */
#ifndef MK_HTTP2CLIENT_H2_CODEC_H
#define MK_HTTP2CLIENT_H2_CODEC_H

#include "upstream/codec.h"

extern const struct mk_codec_ops mk_h2_codec;

/* Ends a header block that begins at `from` with space for a frame header: fills in the frame headers, and
 * splits a long block into frames (RFC 9113, section 6.10). Overflow is recorded in out->failed. */
void mk_h2_codec_end_block(struct mk_buf *out, size_t from, unsigned flags);

#endif
