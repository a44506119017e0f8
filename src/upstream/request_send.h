/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the request: head and body share one bounded buffer. The head stays at the beginning of the buffer so
 * that it can be resent. */
#ifndef MK_UPSTREAM_REQUEST_SEND_H
#define MK_UPSTREAM_REQUEST_SEND_H

#include "upstream/request_type.h"

enum {
    MK_UPSTREAM_REQUEST_SEND_HEAD_MAX = 128 * 1024, /* larger heads are rejected */
    MK_UPSTREAM_REQUEST_SEND_WINDOW = 32 * 1024,    /* maximum body bytes in the buffer */
    /* Includes space for trailers and for the headers that we add. */
    MK_UPSTREAM_REQUEST_SEND_BUFFER_MAX =
        MK_UPSTREAM_REQUEST_SEND_HEAD_MAX + MK_UPSTREAM_REQUEST_SEND_WINDOW + 16 * 1024,
    MK_UPSTREAM_REQUEST_SEND_BUDGET = 1024 * 1024, /* bytes sent before yielding to other connections */
};

/* Call it on a new connection: starts sending from the beginning of `out`, which holds the head and perhaps
 * body data of an earlier attempt. */
void mk_upstream_request_send_start(struct mk_upstream_request *c);
/* Call it when the server has sent 100 Continue: the held body may then be sent. */
void mk_upstream_request_send_held_body(struct mk_upstream_request *c);
/* Can mk_upstream_request_send_start() resend everything sent before? Rewinds the source if there is one. */
bool mk_upstream_request_send_rewind(struct mk_upstream_request *c);
/* Call it after the switch to another protocol: the source then provides tunnel data. */
void mk_upstream_request_send_init_tunnel(struct mk_upstream_request *c);

/* Result of mk_upstream_request_send_run(). */
enum mk_upstream_request_send_result {
    MK_UPSTREAM_REQUEST_SEND_WAITS,         /* waiting for the connection or the source, or finished */
    MK_UPSTREAM_REQUEST_SEND_YIELDS,        /* there is more to send after yielding to other connections */
    MK_UPSTREAM_REQUEST_SEND_CONN_BROKEN,   /* the server accepts no more data; see c->error */
    MK_UPSTREAM_REQUEST_SEND_SOURCE_FAILED, /* the source failed; see c->error */
};
/* Sends as much as the server accepts. */
enum mk_upstream_request_send_result mk_upstream_request_send_run(struct mk_upstream_request *c) MK_MUST_USE;

#endif
