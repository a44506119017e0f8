/* SPDX-License-Identifier: Apache-2.0 */
/* Trailers over HTTP/1: behind the last chunk (RFC 9112, section 7.1.2). */
#ifndef MK_PROTO_H1_TRAILERS_H
#define MK_PROTO_H1_TRAILERS_H

#include "proto/h1.h"

/* Of the request: a piece of the section (MK_CHUNKED_TRAILERS), and its end, where they become known. 0,
 * -EBADMSG when there are too many of them, or -ENOMEM. */
mk_err mk_h1_trailers_gather(struct mk_h1 *h, mk_str piece) MK_MUST_USE;
mk_err mk_h1_trailers_end(struct mk_h1 *h) MK_MUST_USE;

/* Of the response: names those that are known when its head is written, and writes all instead of
 * mk_emit_last_chunk. The scratch has room for both when it is empty. */
void mk_h1_trailers_announce(const struct mk_h1 *h, struct mk_buf *out);
void mk_h1_trailers_write(const struct mk_h1 *h, struct mk_buf *out);

#endif
