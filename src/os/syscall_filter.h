/* SPDX-License-Identifier: Apache-2.0 */
/* Makes system calls that a worker does not need fail (seccomp). Lists these calls instead of the allowed ones,
 * because plugins and libraries of services may call anything else. */
#ifndef MK_OS_SYSCALL_FILTER_H
#define MK_OS_SYSCALL_FILTER_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

struct sock_filter;

enum { MK_SYSCALL_FILTER_MAX = 512 /* instructions */ };

struct mk_syscall_filter {
    bool may_listen;    /* listen(), which chooses a port for a socket without one, unseen by Landlock */
    bool may_fast_open; /* MSG_FASTOPEN, which connects to a port, unseen by Landlock */
    bool logs_denied;   /* the kernel logs each denied call */
};

/* Can this build and this kernel filter system calls? */
bool mk_syscall_filter_is_supported(void);
/* Filters the system calls of all threads of this process, and of its descendants. Needs no_new_privs. -EOPNOTSUPP: the kernel, a container or this build does not support it. */
mk_err mk_syscall_filter_enforce(const struct mk_syscall_filter *f) MK_MUST_USE;
/* Builds the program for the kernel; `code` has room for MK_SYSCALL_FILTER_MAX instructions. Returns their
 * number, 0 if this build has no filter. `self` is the process that may read its own memory by
 * process_vm_readv(). */
unsigned short mk_syscall_filter_build(const struct mk_syscall_filter *f, int self, struct sock_filter *code);
/* Appends lines with the denied calls: "  deny mounts: mount, umount2". */
void mk_syscall_filter_print(const struct mk_syscall_filter *f, struct mk_buf *out);

#endif
