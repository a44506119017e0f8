/* SPDX-License-Identifier: Apache-2.0 */
/* Writing HTTP/1.1 response heads and chunk framing (RFC 9112, sections 4, 5 and 7.1).
 *
 * Nothing is checked here: names must be tokens and values must pass mk_is_field_value, which whoever takes
 * them from a plugin or an upstream makes sure of. */
#ifndef MK_HTTP_EMIT_H
#define MK_HTTP_EMIT_H

#include "base/buf.h"

/* The longest chunk-size line, "ffffffffffffffff\r\n". */
enum { MK_EMIT_CHUNK_MAX = 18 };

/* "HTTP/1.1 200 OK\r\n"; a code that nobody registered goes without a reason. `status` has three digits. */
void mk_emit_status(struct mk_buf *out, unsigned status);
/* "Name: value\r\n" */
void mk_emit_field(struct mk_buf *out, mk_str name, mk_str value);
void mk_emit_field_num(struct mk_buf *out, mk_str name, uint64_t value);
/* The empty line. */
void mk_emit_end(struct mk_buf *out);

/* "1f4\r\n". `size` > 0 bytes of data and "\r\n" follow. */
void mk_emit_chunk(struct mk_buf *out, uint64_t size);
/* "0\r\n\r\n", without trailers. */
void mk_emit_last_chunk(struct mk_buf *out);

#endif
