/* SPDX-License-Identifier: Apache-2.0 */
/* Serializes HTTP/1.1 response heads and the last chunk (RFC 9112, sections 4, 5 and 7.1).
 *
 * Nothing is validated here: callers that get names or values from a plugin or an upstream must check that
 * names are tokens and that values satisfy mk_is_header_value(). */
#ifndef MK_HTTP_SERIALIZE_H
#define MK_HTTP_SERIALIZE_H

#include "base/buf.h"

/* Writes "HTTP/1.1 200 OK\r\n"; an unregistered code has no reason phrase. `status` has three digits. */
void mk_serialize_status_line(struct mk_buf *out, unsigned status);
/* Writes "Name: value\r\n". */
void mk_serialize_header(struct mk_buf *out, mk_str name, mk_str value);
void mk_serialize_header_num(struct mk_buf *out, mk_str name, uint64_t value);
/* Writes the empty line at the end of the head. */
void mk_serialize_head_end(struct mk_buf *out);

/* Writes the last chunk, "0\r\n\r\n", without trailers. */
void mk_serialize_last_chunk(struct mk_buf *out);

#endif
