/* SPDX-License-Identifier: Apache-2.0 */
/* Turns header blocks of HTTP/2 clients into requests and trailers, and dispatches the requests. */
#ifndef MK_HTTP2_H2_REQUEST_H
#define MK_HTTP2_H2_REQUEST_H

#include "http2/h2_types.h"

/* Handles a complete header block: opens the stream with a request, or ends its body with trailers. */
void mk_h2_request_receive_block(struct mk_h2 *h2, uint32_t stream, mk_str block, bool ends);

/* Runs dispatch until it finishes or has to wait. The stream may be closed when this returns. */
void mk_h2_request_run(struct mk_h2_stream *s);

/* Parses a Priority header like "u=1, i"; missing or malformed members keep their defaults. */
struct mk_h2_priority mk_h2_priority_parse(mk_str value);

#endif
