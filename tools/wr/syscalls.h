/* SPDX-License-Identifier: Apache-2.0 */
/* Counting a server's system calls with the kernel's tracepoint, which costs it a little for each. */
#ifndef WR_SYSCALLS_H
#define WR_SYSCALLS_H

#include "wr/process_tree.h"

struct wr_syscalls {
    int *fds; /* one for each thread; children and new threads of it count there too */
    size_t n;
};

/* NULL, or why they cannot be counted: words that follow "system calls are not counted: ". */
const char *wr_syscalls_start(struct wr_syscalls *s, const struct wr_process_tree *f) MK_MUST_USE;
/* How many there were. Ends the counting; to be called after each start, whatever it answered. */
uint64_t wr_syscalls_stop(struct wr_syscalls *s);

#endif
