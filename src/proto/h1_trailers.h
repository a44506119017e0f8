/* SPDX-License-Identifier: Apache-2.0 */
/* Trailers over HTTP/1: behind the last chunk (RFC 9112, section 7.1.2). */
#ifndef MK_PROTO_H1_TRAILERS_H
#define MK_PROTO_H1_TRAILERS_H

#include "proto/h1_types.h"

/* Request trailers: adds a piece of the section (MK_CHUNKED_TRAILERS), and parses the whole section at its
 * end. 0, -EBADMSG when there are too many of them, or -ENOMEM. */
mk_err mk_h1_trailers_append(struct mk_h1 *h, mk_str piece) MK_MUST_USE;
mk_err mk_h1_trailers_parse(struct mk_h1 *h) MK_MUST_USE;

/* Response trailers, instead of mk_serialize_last_chunk. An empty scratch has room for them. */
void mk_h1_trailers_write(const struct mk_h1 *h, struct mk_buf *out);

#endif
