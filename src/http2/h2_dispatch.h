/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/2 stream in the flow: from its request to the response that is ready to be sent. */
#ifndef MK_HTTP2_H2_DISPATCH_H
#define MK_HTTP2_H2_DISPATCH_H

#include "http2/h2_types.h"

/* Runs the flow as far as possible; the stream may be closed when this returns. */
void mk_h2_dispatch_run(struct mk_h2_stream *s);
/* Responds with an error at once. */
void mk_h2_dispatch_error(struct mk_h2_stream *s, unsigned status);

#endif
