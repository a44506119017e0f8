/* SPDX-License-Identifier: Apache-2.0 */
/* Compresses and inflates messages as RFC 7692 has them: deflate without a wrapper and without its last four
 * bytes. ws_deflate_zlib.c does it; ws_deflate_none.c takes its place where zlib is missing. */
#ifndef MK_WEBSOCKET_WS_DEFLATE_H
#define MK_WEBSOCKET_WS_DEFLATE_H

#include <monkey/buf.h>

#include "base/compiler.h"

/* One direction each of compressing and inflating. Both are made when they are first needed. */
struct mk_ws_deflate;

/* Can this build compress at all? */
bool mk_ws_deflate_is_supported(void);
/* `bits`: the window of what is compressed. NULL when memory is out. */
struct mk_ws_deflate *mk_ws_deflate_new(unsigned bits) MK_MUST_USE;
/* NULL is fine. */
void mk_ws_deflate_free(struct mk_ws_deflate *c);

/* Both append to `out`; `keeps`: the message may refer to those before it, else it begins with an empty
 * window. 0; -EMSGSIZE when `out` may not grow that far; -ENOMEM. */
int mk_ws_deflate_compress(struct mk_ws_deflate *c, mk_str data, bool keeps, struct mk_buf *out) MK_MUST_USE;
/* -EBADMSG too: it is no such data, or data that would cost much more time than its length warrants. *cost grows
 * by what it took, in bytes of ordinary data. */
int mk_ws_deflate_decompress(struct mk_ws_deflate *c, mk_str data, bool keeps, struct mk_buf *out,
                             uint64_t *cost) MK_MUST_USE;

/* The next message that is compressed refers to none before it. */
void mk_ws_deflate_reset_compression(struct mk_ws_deflate *c);
/* Gives the memory back that is not needed while nothing is coded: all but the window of the peer's messages,
 * if `keeps` is true. */
void mk_ws_deflate_release_memory(struct mk_ws_deflate *c, bool keeps);

#endif
