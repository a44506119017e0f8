/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between our processes that can carry descriptors (SCM_RIGHTS). */
#ifndef MK_OS_FD_PASSING_H
#define MK_OS_FD_PASSING_H

#include <sys/uio.h>

#include "base/err.h"

enum { MK_FD_PASSING_MAX = 3 };

/* Creates a pair of connected sockets: SOCK_SEQPACKET, non-blocking, close-on-exec. */
mk_err mk_fd_passing_pair(int *a, int *b) MK_MUST_USE;
/* Sends one message; the caller keeps its descriptors. -EMSGSIZE: too long for the system. */
mk_err mk_fd_passing_send(int end, const struct iovec *parts, size_t n_parts, const int *fds,
                          size_t n_fds) MK_MUST_USE;
/* Receives one message without waiting. Returns its length, -EAGAIN, or -EPIPE when the other end is closed.
 * -EMSGSIZE: the message was lost, because it exceeded `cap` or carried descriptors that we could not
 * receive. On success, all MK_FD_PASSING_MAX elements of `fds` are set, to -1 or to a descriptor, which the
 * caller must close. */
ssize_t mk_fd_passing_receive(int end, void *buf, size_t cap, int *fds) MK_MUST_USE;

#endif
