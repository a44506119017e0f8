/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between processes of ours, with descriptors in them (SCM_RIGHTS). */
#ifndef MK_OS_RIGHTS_H
#define MK_OS_RIGHTS_H

#include <sys/uio.h>

#include "base/err.h"

enum { MK_RIGHTS_MAX = 3 };

/* Both ends of a pair of sockets that keep messages apart, non-blocking, each closed by an exec. */
mk_err mk_rights_pair(int *a, int *b) MK_MUST_USE;
/* Sends one message; the descriptors stay the caller's. -EMSGSIZE: it is too long for the system. */
mk_err mk_rights_send(int end, const struct iovec *parts, size_t n_parts, const int *fds,
                      size_t n_fds) MK_MUST_USE;
/* Receives one without waiting: its length, or -EAGAIN, or -EPIPE when the other end is gone. -EMSGSIZE: it
 * was longer than the room, or had descriptors that we could not take; it is lost. Those in `fds`
 * (MK_RIGHTS_MAX) are the caller's to close; -1: none. */
ssize_t mk_rights_receive(int end, void *room, size_t cap, int *fds) MK_MUST_USE;

#endif
