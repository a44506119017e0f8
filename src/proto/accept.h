/* SPDX-License-Identifier: Apache-2.0 */
/* Taking connections from a listening socket, and what to do when there are too many. */
#ifndef MK_PROTO_ACCEPT_H
#define MK_PROTO_ACCEPT_H

#include "proto/conn.h"

struct mk_acceptor {
    struct mk_watch watch;
    struct mk_service *service;
    int fd;         /* not owned */
    int reserve_fd; /* given up when no descriptor is left, so that a connection can be taken and told so */
    bool paused;    /* not in the loop: there is no room */
    bool wants_tls; /* to be set after the start: nothing but TLS is understood there, */
    bool wants_h2;  /* or nothing but HTTP/2 */
    struct mk_timer retry;
};

/* Starts taking connections from `fd`, a non-blocking listener that must stay open. */
mk_err mk_acceptor_start(struct mk_acceptor *a, struct mk_service *s, int fd) MK_MUST_USE;
/* Takes what waits in the kernel's queue, as far as there is room: it ends with the socket. */
void mk_acceptor_take_waiting(struct mk_acceptor *a);
/* Takes no more. What waits in the kernel's queue stays there for whoever else listens. */
void mk_acceptor_stop(struct mk_acceptor *a);
/* A connection closed: there may be room again. */
void mk_acceptor_wake(struct mk_acceptor *a);

#endif
