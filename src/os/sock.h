/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners and accepted connections. */
#ifndef MK_OS_SOCK_H
#define MK_OS_SOCK_H

#include "os/sockaddr.h"

struct mk_sock_options {
    int backlog;
    int send_room;   /* SO_SNDBUF of connections; 0: the system's default */
    unsigned mode;   /* mode of the unix socket file */
    bool reuse_port; /* several sockets share the address; the kernel distributes connections among them */
    bool quiet;      /* bind only: call mk_sock_start_listening() later */
};

/* Creates a non-blocking listener. Replaces a unix socket file that no longer has a listener. */
mk_err mk_sock_listen(const struct mk_sockaddr *a, const struct mk_sock_options *o, int *fd) MK_MUST_USE;
/* Starts accepting connections; harmless when already started. */
mk_err mk_sock_start_listening(int fd, int backlog) MK_MUST_USE;
/* Tests whether we could listen on the address. -EADDRINUSE: another program listens on it. */
mk_err mk_sock_test_bind(const struct mk_sockaddr *a) MK_MUST_USE;
/* Accepts the next connection. Returns its non-blocking descriptor, or a negative error (-EAGAIN if none
 * is pending). */
int mk_sock_accept(int fd, struct mk_addr *peer);
/* Does this IPv6 listener accept IPv4 clients as well? A listener from a service manager may. */
bool mk_sock_is_dual_stack(int fd);
/* Returns how many bytes of the send buffer the peer has not acknowledged; 0 if unknown. */
unsigned mk_sock_unsent_bytes(int fd);
/* Has the socket received bytes that have not been read? */
bool mk_sock_has_input(int fd);
/* Do several sockets share the address of this listener? Otherwise, processes may share the socket itself. */
bool mk_sock_is_reuse_port(int fd);
/* Sends as much of the final data as the kernel accepts immediately, and closes the socket. Discards unread
 * input, because closing with unread input would send a reset. */
void mk_sock_send_and_close(int *fd, mk_str text);
/* Closes the socket with a reset: the peer notices at once, and no TIME_WAIT remains. */
void mk_sock_close_with_rst(int *fd);

#endif
