/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1 trailers, after the last chunk (RFC 9112, section 7.1.2). */
#ifndef MK_CONNECTION_H1_TRAILERS_H
#define MK_CONNECTION_H1_TRAILERS_H

#include "connection/h1_types.h"

/* Append a piece of the request's trailer section (MK_CHUNKED_TRAILERS) and, at its end, parse the whole
 * section. Both return 0, -EBADMSG if there are too many trailers, or -ENOMEM. */
mk_err mk_h1_trailers_append(struct mk_h1 *h, mk_str piece) MK_MUST_USE;
mk_err mk_h1_trailers_parse(struct mk_h1 *h) MK_MUST_USE;

/* Writes the response trailers, in place of mk_serialize_last_chunk(). The output buffer must be empty: it
 * then has enough space. */
void mk_h1_trailers_write(const struct mk_h1 *h, struct mk_buf *out);

#endif
