/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that raise SIGPIPE and have no MSG_NOSIGNAL: sendfile(2), and write(2) to a pipe. */
#ifndef MK_OS_QUIET_H
#define MK_OS_QUIET_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/def.h"

struct mk_quiet {
    sigset_t before; /* used by the library alone */
    bool holds;
};

/* Between the two no signal comes. `n` is what the call answered; errno stays. The program ignores the signal,
 * a library must not. */
void mk_quiet_begin(struct mk_quiet *q);
void mk_quiet_end(struct mk_quiet *q, ssize_t n);

#endif
