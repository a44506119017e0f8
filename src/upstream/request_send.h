/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the request: its head and content go through one buffer, which is bounded. The head stays at its
 * beginning, so that it can be sent again. */
#ifndef MK_UPSTREAM_REQUEST_SEND_H
#define MK_UPSTREAM_REQUEST_SEND_H

#include "upstream/request_type.h"

enum {
    MK_UPSTREAM_REQUEST_SEND_HEAD_MAX = 128 * 1024, /* a longer head is refused */
    MK_UPSTREAM_REQUEST_SEND_WINDOW = 32 * 1024,    /* content that is under way */
    /* With trailers, and what we add to the head. */
    MK_UPSTREAM_REQUEST_SEND_BUFFER_MAX =
        MK_UPSTREAM_REQUEST_SEND_HEAD_MAX + MK_UPSTREAM_REQUEST_SEND_WINDOW + 16 * 1024,
    MK_UPSTREAM_REQUEST_SEND_TURN_MAX = 1024 * 1024, /* so much is sent before others get their turn */
};

/* A new connection: from the beginning, or as much as `out` holds of it. */
void mk_upstream_request_send_start(struct mk_upstream_request *c);
/* The server asks for content that was held. */
void mk_upstream_request_send_held_body(struct mk_upstream_request *c);
/* Can mk_upstream_request_send_start() send all that was sent before? A source begins again. */
bool mk_upstream_request_send_rewind(struct mk_upstream_request *c);
/* The connection changed to another protocol, in which the source sends. */
void mk_upstream_request_send_init_tunnel(struct mk_upstream_request *c);

/* What came of mk_upstream_request_send_run(). */
enum mk_upstream_request_send_result {
    MK_UPSTREAM_REQUEST_SEND_WAITS,       /* for the connection, or the source; or there is no more to send */
    MK_UPSTREAM_REQUEST_SEND_YIELDS,      /* there is more, and it is the turn of others */
    MK_UPSTREAM_REQUEST_SEND_CONN_BROKEN, /* the server takes no more, see c->error */
    MK_UPSTREAM_REQUEST_SEND_SOURCE_FAILED, /* the source failed, see c->error */
};
/* Sends what there is, as far as the server takes it. */
enum mk_upstream_request_send_result mk_upstream_request_send_run(struct mk_upstream_request *c) MK_MUST_USE;

#endif
