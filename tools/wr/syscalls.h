/* SPDX-License-Identifier: Apache-2.0 */
/* Counts a server's system calls with a kernel tracepoint, at a small cost per call. */
#ifndef WR_SYSCALLS_H
#define WR_SYSCALLS_H

#include "wr/process_tree.h"

struct wr_syscalls {
    int *fds; /* one counter per thread, inherited by its child processes and new threads */
    size_t n;
};

/* Returns NULL, or why the calls cannot be counted, as the continuation of "cannot count system calls: ". */
const char *wr_syscalls_start(struct wr_syscalls *s, const struct wr_process_tree *f) MK_MUST_USE;
/* Stops counting and returns the number of calls. Call it after each start, even a failed one. */
uint64_t wr_syscalls_stop(struct wr_syscalls *s);

#endif
