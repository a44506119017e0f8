/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets: making listeners, taking connections. */
#ifndef MK_OS_SOCK_H
#define MK_OS_SOCK_H

#include "os/addr.h"

struct mk_sock_options {
    int backlog;
    int send_room;   /* SO_SNDBUF of the connections, 0 for the system's own choice */
    unsigned mode;   /* of a unix socket's file */
    bool reuse_port; /* several sockets share the address, the kernel spreads connections over them */
    bool quiet;      /* only take the address: connections come after mk_sock_begin */
};

/* A non-blocking listener. The file of a unix socket that nobody listens on any more is replaced. */
mk_err mk_sock_listen(const struct mk_addr *a, const struct mk_sock_options *o, int *fd) MK_MUST_USE;
/* The connections come from now on; harmless where they came before. */
mk_err mk_sock_begin(int fd, int backlog) MK_MUST_USE;
/* Could we listen there, or does another program already? -EADDRINUSE is the answer of interest. */
mk_err mk_sock_probe(const struct mk_addr *a) MK_MUST_USE;
/* The next waiting connection, non-blocking: its descriptor, or a negative error (-EAGAIN when there is
 * none). */
int mk_sock_accept(int fd, struct mk_peer *peer);
/* Bytes that were handed to the kernel and that the peer has not taken yet; 0 where that cannot be known. */
unsigned mk_sock_unsent(int fd);
/* Closes with a reset: the peer learns at once, and no TIME_WAIT stays behind. */
void mk_sock_reset(int *fd);

#endif
