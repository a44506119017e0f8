/* SPDX-License-Identifier: Apache-2.0 */
/* Accepts connections from a listening socket, and handles overload. */
#ifndef MK_CONNECTION_ACCEPTOR_H
#define MK_CONNECTION_ACCEPTOR_H

#include "connection/conn.h"

struct mk_acceptor {
    struct mk_acceptor *next; /* next acceptor in the owner's list */
    struct mk_fd_watch watch;
    struct mk_conn_manager *manager;
    int fd;         /* not owned */
    int reserve_fd; /* closed when descriptors run out, so that a connection can be accepted and rejected */
    bool paused;    /* removed from the loop: no capacity, or `held` */
    bool held;      /* paused by the program: mk_acceptor_hold() */
    bool rejects;   /* rejects each connection immediately */
    bool wants_tls; /* set after mk_acceptor_start(): accept only TLS */
    bool wants_h2;  /* set after mk_acceptor_start(): accept only HTTP/2 */
    bool is_shared; /* set after mk_acceptor_start(): other workers accept from the same socket */
    const struct mk_vhosts *hosts; /* virtual hosts of accepted connections; NULL: those of the manager */
    struct mk_timer retry;
};

/* Starts accepting connections from `fd`, a non-blocking listener that must stay open. */
mk_err mk_acceptor_start(struct mk_acceptor *a, struct mk_conn_manager *s, int fd) MK_MUST_USE;
/* Accepts the connections that wait in the kernel's queue, as far as capacity allows. Call it before closing
 * the socket, because closing discards the queue. */
void mk_acceptor_accept_queued(struct mk_acceptor *a);
/* Stops accepting. Pending connections stay in the kernel's queue for other processes that listen on the same
 * socket. *a must stay valid until the end of the loop iteration. */
void mk_acceptor_stop(struct mk_acceptor *a);
/* `held`: true stops accepting, so that new connections stay in the kernel's queue; false accepts again. */
void mk_acceptor_hold(struct mk_acceptor *a, bool held);
/* Call it after a connection is closed: accepts again if the acceptor was paused for lack of capacity. */
void mk_acceptor_resume(struct mk_acceptor *a);

#endif
