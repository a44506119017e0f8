/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks SIGPIPE during calls that raise it and have no MSG_NOSIGNAL: sendfile(2), and write(2) to a pipe. */
#ifndef MK_OS_SIGPIPE_H
#define MK_OS_SIGPIPE_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/compiler.h"

struct mk_sigpipe_guard {
    sigset_t before; /* signal mask of the thread; set only in the library */
    bool is_blocked; /* mk_sigpipe_block() has blocked the signal */
};

/* Blocks SIGPIPE between the two calls; n is the result of the system call in between, whose errno is kept.
 * The server program ignores the signal, but a library must not change its handling. */
void mk_sigpipe_block(struct mk_sigpipe_guard *q);
void mk_sigpipe_restore(struct mk_sigpipe_guard *q, ssize_t n);

#endif
