/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that raise SIGPIPE and have no MSG_NOSIGNAL: sendfile(2), and write(2) to a pipe. */
#ifndef MK_OS_SIGPIPE_H
#define MK_OS_SIGPIPE_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/compiler.h"

struct mk_sigpipe_guard {
    sigset_t before; /* used by the library alone */
    bool holds;
};

/* Between the two no signal comes. `n` is what the call answered; errno stays. The program ignores the signal,
 * a library must not. */
void mk_sigpipe_block(struct mk_sigpipe_guard *q);
void mk_sigpipe_restore(struct mk_sigpipe_guard *q, ssize_t n);

#endif
