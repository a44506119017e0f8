/* SPDX-License-Identifier: Apache-2.0 */
/* Header blocks that the server keeps HPACK-encoded. They are valid on every connection, because nothing is
 * ever added to a client's dynamic table. */
#ifndef MK_HTTP2_H2_CACHED_HEAD_H
#define MK_HTTP2_H2_CACHED_HEAD_H

#include "connection/http2.h"

/* An mk_h2_head_writer. */
void mk_h2_cached_head_write(struct mk_buf *out, const struct mk_header_block *whole, uint64_t size);
/* HPACK-encodes the common headers. The date comes last, where mk_common_headers_update_date() renews it. */
void mk_h2_cached_head_write_date(struct mk_common_headers *s);

#endif
