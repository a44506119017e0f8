/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the response. The head is stored; the body goes directly to the caller's buffer. */
#ifndef MK_UPSTREAM_REQUEST_RECEIVE_H
#define MK_UPSTREAM_REQUEST_RECEIVE_H

#include "upstream/request_type.h"

enum {
    MK_UPSTREAM_REQUEST_RECEIVE_FIELDS = 100,    /* maximum header lines */
    MK_UPSTREAM_REQUEST_RECEIVE_ROOM = 8 * 1024, /* bytes per read until the head is complete */
    MK_UPSTREAM_REQUEST_RECEIVE_ROUNDS = 64,     /* reads without body data before yielding to other
                                                  * connections */
};

/* Prepares for the response. mk_upstream_request_receive_reset() does so again for another connection. */
void mk_upstream_request_receive_init(struct mk_upstream_request *c,
                                      const struct mk_upstream_request_options *options);
void mk_upstream_request_receive_reset(struct mk_upstream_request *c);
void mk_upstream_request_receive_fini(struct mk_upstream_request *c);

/* Receives a head. 0: the head is complete, and the state has advanced; 1: an interim response; -EAGAIN;
 * -ESTALE: the server rejected a pooled connection, so the request must be resent over a new connection;
 * another error: the connection is unusable, with a message in c->problem. */
int mk_upstream_request_receive_head(struct mk_upstream_request *c) MK_MUST_USE;
/* Implements mk_upstream_request_read() in MK_UPSTREAM_REQUEST_CONTENT and MK_UPSTREAM_REQUEST_UPGRADED.
 * Releases the connection at the end or on failure. */
ssize_t mk_upstream_request_receive_body(struct mk_upstream_request *c, char *buf, size_t cap);
/* Implements mk_upstream_request_buffered_body() in MK_UPSTREAM_REQUEST_CONTENT. */
bool mk_upstream_request_receive_buffered(struct mk_upstream_request *c, mk_str *content);

#endif
