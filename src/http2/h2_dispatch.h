/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatch of an HTTP/2 stream, from its request to the complete response. */
#ifndef MK_HTTP2_H2_DISPATCH_H
#define MK_HTTP2_H2_DISPATCH_H

#include "http2/h2_types.h"

/* Runs dispatch until it finishes or has to wait. The stream may be closed when this returns. */
void mk_h2_dispatch_run(struct mk_h2_stream *s);
/* Responds with an error immediately. */
void mk_h2_dispatch_error(struct mk_h2_stream *s, unsigned status);

#endif
