/* SPDX-License-Identifier: Apache-2.0 */
/* Fields in the form of HTTP/2 (RFC 7541). Decoding needs state, and is a library's; what we send needs none:
 * nothing is ever put into the peer's table, so that a field once written fits every connection. */
#ifndef MK_HTTP2_HPACK_H
#define MK_HTTP2_HPACK_H

#include "base/buf.h"
#include "base/err.h"

/* ---- Decoding ---- */

struct mk_hpack;

/* The library that decodes, with its version. */
extern const char mk_hpack_library[];

/* A decoder for one connection, whose table holds at most 4096 bytes; NULL when memory is out. */
struct mk_hpack *mk_hpack_new(void);
void mk_hpack_free(struct mk_hpack *h);

/* Called for each field; name and value are valid during the call. An answer other than 0 means that this
 * field and those behind it are not wanted: the rest of the block is still decoded, without being shown, so
 * that the table stays right. */
typedef int mk_hpack_on_header(void *ctx, mk_str name, mk_str value);

/* A whole block. 0: all fields were shown. -EBADMSG: it is malformed, and the connection with it. -ENOMEM.
 * -ECANCELED: on_field did not want all of them. */
mk_err mk_hpack_decode(struct mk_hpack *h, mk_str block, mk_hpack_on_header *on_field, void *ctx) MK_MUST_USE;

/* ---- Encoding; as always with a mk_buf, what does not fit shows in out->failed ---- */

void mk_hpack_encode_status(struct mk_buf *out, unsigned status);
/* The name in any case of letters. */
void mk_hpack_encode(struct mk_buf *out, mk_str name, mk_str value);
/* The same for a value that no table on the way may keep (RFC 7541, section 7.1.3), as Set-Cookie's. */
void mk_hpack_encode_never_indexed(struct mk_buf *out, mk_str name, mk_str value);
void mk_hpack_encode_num(struct mk_buf *out, mk_str name, uint64_t value);

#endif
