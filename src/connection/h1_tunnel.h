/* SPDX-License-Identifier: Apache-2.0 */
/* Tunnel after an HTTP/1 upgrade: bytes in both directions, which end independently. */
#ifndef MK_CONNECTION_H1_TUNNEL_H
#define MK_CONNECTION_H1_TUNNEL_H

#include "connection/h1_types.h"

enum mk_h1_tunnel_result {
    MK_H1_TUNNEL_OPEN,   /* waits for the next event */
    MK_H1_TUNNEL_OVER,   /* our direction has ended, and the client's has ended or is not wanted */
    MK_H1_TUNNEL_BROKEN, /* see h->d.outcome */
};

/* Call it when the response head is in the output buffer: from then on, all input belongs to the tunnel. */
void mk_h1_tunnel_start(struct mk_h1 *h);
/* Transfers as much data as possible. Call it only while the connection is being served. */
enum mk_h1_tunnel_result mk_h1_tunnel_run(struct mk_h1 *h);

#endif
