/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the response. A head is kept, content goes right into the caller's room. */
#ifndef MK_UPSTREAM_REQUEST_RECEIVE_H
#define MK_UPSTREAM_REQUEST_RECEIVE_H

#include "upstream/request_type.h"

enum {
    MK_UPSTREAM_REQUEST_RECEIVE_FIELDS = 100,    /* lines of a head */
    MK_UPSTREAM_REQUEST_RECEIVE_ROOM = 8 * 1024, /* what is read at once as long as the head is not there */
    MK_UPSTREAM_REQUEST_RECEIVE_ROUNDS = 64,     /* reads without content before others get their turn */
};

/* A new connection. */
void mk_upstream_request_receive_init(struct mk_upstream_request *c,
                                      const struct mk_upstream_request_options *options);
void mk_upstream_request_receive_reset(struct mk_upstream_request *c);
void mk_upstream_request_receive_fini(struct mk_upstream_request *c);

/* 0: the head is there, and the request moved on; 1: an interim one; -EAGAIN; -ESTALE: the server refuses a kept
 * connection, and the request is to be sent over a new one; else the connection is of no
 * use any more, and why: c->problem says it in words. */
int mk_upstream_request_receive_head(struct mk_upstream_request *c) MK_MUST_USE;
/* As mk_upstream_request_read(), in MK_UPSTREAM_REQUEST_CONTENT and MK_UPSTREAM_REQUEST_UPGRADED. At the end, or if it fails, the
 * connection is given back. */
ssize_t mk_upstream_request_receive_body(struct mk_upstream_request *c, char *buf, size_t cap);
/* As mk_upstream_request_buffered_body(), in MK_UPSTREAM_REQUEST_CONTENT. */
bool mk_upstream_request_receive_buffered(struct mk_upstream_request *c, mk_str *content);

#endif
