/* SPDX-License-Identifier: Apache-2.0 */
/* Message compression by RFC 7692: raw deflate without its last four bytes. Implemented in ws_deflate_zlib.c;
 * ws_deflate_none.c replaces it in builds without zlib. */
#ifndef MK_WEBSOCKET_WS_DEFLATE_H
#define MK_WEBSOCKET_WS_DEFLATE_H

#include <monkey/buf.h>

#include "base/compiler.h"

/* One compressor and one decompressor, each created on first use. */
struct mk_ws_deflate;

/* Does this build support compression? */
bool mk_ws_deflate_is_supported(void);
/* `bits`: window size of the compressor. NULL: out of memory. */
struct mk_ws_deflate *mk_ws_deflate_new(unsigned bits) MK_MUST_USE;
/* Accepts NULL. */
void mk_ws_deflate_free(struct mk_ws_deflate *c);

/* Compression and decompression append to `out`. With `keeps` (context takeover), the message may refer to
 * earlier ones; otherwise it starts with an empty window. Returns 0; -EMSGSIZE: `out` may not grow that far;
 * -ENOMEM. */
int mk_ws_deflate_compress(struct mk_ws_deflate *c, mk_str data, bool keeps, struct mk_buf *out) MK_MUST_USE;
/* Also returns -EBADMSG for invalid data, and for data that takes much more time to inflate than its length
 * warrants. Adds the CPU cost to *cost, expressed as the number of bytes of ordinary data that could be
 * inflated in the same time. */
int mk_ws_deflate_decompress(struct mk_ws_deflate *c, mk_str data, bool keeps, struct mk_buf *out,
                             uint64_t *cost) MK_MUST_USE;

/* Makes the next compressed message independent of earlier messages. */
void mk_ws_deflate_reset_compression(struct mk_ws_deflate *c);
/* Frees memory that is not needed while the socket is idle. With `keeps`, keeps the window to which later
 * messages of the peer may refer. */
void mk_ws_deflate_release_memory(struct mk_ws_deflate *c, bool keeps);

#endif
