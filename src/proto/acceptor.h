/* SPDX-License-Identifier: Apache-2.0 */
/* Taking connections from a listening socket, and what to do when there are too many. */
#ifndef MK_PROTO_ACCEPTOR_H
#define MK_PROTO_ACCEPTOR_H

#include "proto/conn.h"

struct mk_acceptor {
    struct mk_fd_watch watch;
    struct mk_conn_manager *service;
    int fd;         /* not owned */
    int reserve_fd; /* closed when no descriptor is left, so that a connection can be accepted and refused */
    bool paused;    /* not in the loop: there is no room */
    bool wants_tls; /* to be set after the start: nothing but TLS is understood there, */
    bool wants_h2;  /* or nothing but HTTP/2; */
    const struct mk_vhosts *hosts; /* whose connections they are; NULL: the service's */
    struct mk_timer retry;
};

/* Starts taking connections from `fd`, a non-blocking listener that must stay open. */
mk_err mk_acceptor_start(struct mk_acceptor *a, struct mk_conn_manager *s, int fd) MK_MUST_USE;
/* Accepts the connections in the kernel's queue, as far as there is room: the queue ends with the socket. */
void mk_acceptor_accept_queued(struct mk_acceptor *a);
/* Stops accepting. Connections in the kernel's queue stay there for other processes that listen. */
void mk_acceptor_stop(struct mk_acceptor *a);
/* A connection closed: there may be room again. */
void mk_acceptor_resume(struct mk_acceptor *a);

#endif
