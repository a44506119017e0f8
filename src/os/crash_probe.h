/* SPDX-License-Identifier: Apache-2.0 */
/* Runs risky code in a disposable process. */
#ifndef MK_OS_CRASH_PROBE_H
#define MK_OS_CRASH_PROBE_H

#include <sys/types.h>

#include "base/err.h"

/* Calls fn(ctx) in a forked process. Returns 0 if fn returned; the number of the signal that ended the
 * process, SIGALRM if it ran longer than `seconds`; -ECANCELED if the process exited; or another error if the
 * fork failed. */
int mk_crash_probe_run(void (*fn)(void *ctx), void *ctx, unsigned seconds) MK_MUST_USE;

/* Asynchronous variant: the first function returns the pid of the process, which the caller must reap, or
 * a negated errno value; the second one interprets the waitpid(2) status. */
pid_t mk_crash_probe_start(void (*fn)(void *ctx), void *ctx, unsigned seconds) MK_MUST_USE;
int mk_crash_probe_result(int status) MK_MUST_USE;

#endif
