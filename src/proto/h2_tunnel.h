/* SPDX-License-Identifier: Apache-2.0 */
/* A tunnel on a stream of HTTP/2 (RFC 8441): bytes in both directions, each of which ends by itself. */
#ifndef MK_PROTO_H2_TUNNEL_H
#define MK_PROTO_H2_TUNNEL_H

#include "proto/h2_stream.h"

/* The handler has accepted it: from here on all content belongs to the tunnel. */
void mk_h2_tunnel_begin(struct mk_h2_stream *s);
/* Something may have become possible. The stream may be gone after it. */
void mk_h2_tunnel_take_turn(struct mk_h2_stream *s);

#endif
