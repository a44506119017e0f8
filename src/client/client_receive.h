/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the response. A head is kept, content goes right into the caller's room. */
#ifndef MK_CLIENT_CLIENT_RECEIVE_H
#define MK_CLIENT_CLIENT_RECEIVE_H

#include "client/client_type.h"

enum {
    MK_CLIENT_RECEIVE_FIELDS = 100,    /* lines of a head */
    MK_CLIENT_RECEIVE_ROOM = 8 * 1024, /* what is read at once as long as the head is not there */
    MK_CLIENT_RECEIVE_ROUNDS = 64,     /* reads without content before others get their turn */
};

/* A new connection. */
void mk_client_receive_begin(struct mk_client *c, const struct mk_client_request *ask);
void mk_client_receive_again(struct mk_client *c);
void mk_client_receive_fini(struct mk_client *c);

/* 0: the head is there, and the exchange moved on; 1: an interim one; -EAGAIN; else the connection is of no
 * use any more, and why: c->problem says it in words. */
int mk_client_receive_head(struct mk_client *c) MK_MUST_USE;
/* As mk_client_read(), in MK_CLIENT_CONTENT and MK_CLIENT_UPGRADED. At the end, or if it fails, the
 * connection is given back. */
ssize_t mk_client_receive_content(struct mk_client *c, char *room, size_t cap);
/* As mk_client_whole(), in MK_CLIENT_CONTENT. */
bool mk_client_receive_whole(struct mk_client *c, mk_str *content);

#endif
