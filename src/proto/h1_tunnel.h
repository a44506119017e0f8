/* SPDX-License-Identifier: Apache-2.0 */
/* A tunnel that has replaced HTTP/1: bytes in both directions, which end independently. */
#ifndef MK_PROTO_H1_TUNNEL_H
#define MK_PROTO_H1_TUNNEL_H

#include "proto/h1_types.h"

enum mk_h1_tunnel_result {
    MK_H1_TUNNEL_OPEN,   /* nothing to do until the next event */
    MK_H1_TUNNEL_OVER,   /* the server's direction has ended, and the client's has ended or is unwanted */
    MK_H1_TUNNEL_BROKEN, /* h->d.ending says why */
};

/* The head of the response is in the scratch: from here on all input belongs to the tunnel. */
void mk_h1_tunnel_start(struct mk_h1 *h);
/* Makes what progress is possible. Only while the connection is being served. */
enum mk_h1_tunnel_result mk_h1_tunnel_run(struct mk_h1 *h);

#endif
