/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/2 stream as a tunnel (RFC 8441): bytes in both directions, which end independently. */
#ifndef MK_HTTP2_H2_TUNNEL_H
#define MK_HTTP2_H2_TUNNEL_H

#include "http2/h2_types.h"

/* Call it when the response opens the tunnel. */
void mk_h2_tunnel_begin(struct mk_h2_stream *s);
/* Transfers as much data as possible. The stream may be closed when this returns. */
void mk_h2_tunnel_run(struct mk_h2_stream *s);

#endif
