/* SPDX-License-Identifier: Apache-2.0 */
/* A tunnel in the place of HTTP/1: bytes in both directions, each of which ends by itself. */
#ifndef MK_PROTO_H1_TUNNEL_H
#define MK_PROTO_H1_TUNNEL_H

#include "proto/h1.h"

enum mk_h1_tunnel_turn {
    MK_H1_TUNNEL_OPEN,   /* there is nothing to do until something happens */
    MK_H1_TUNNEL_OVER,   /* we have said all, and the peer too or nobody listens */
    MK_H1_TUNNEL_BROKEN, /* h->ending says why */
};

/* Its head stands in the scratch: from here on all input belongs to the tunnel. */
void mk_h1_tunnel_begin(struct mk_h1 *h);
/* Something may have become possible. Only while the connection is being served. */
enum mk_h1_tunnel_turn mk_h1_tunnel_take_turn(struct mk_h1 *h);

#endif
