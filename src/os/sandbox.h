/* SPDX-License-Identifier: Apache-2.0 */
/* Sandbox of a worker, which can then neither gain privileges nor access files outside the allowed folders
 * (Landlock). */
#ifndef MK_OS_SANDBOX_H
#define MK_OS_SANDBOX_H

#include "base/err.h"

/* The first ABI of Landlock that restricts all that we want: files, TCP ports, signals and abstract sockets. */
enum { MK_SANDBOX_COMPLETE_ABI = 6 };

/* Returns the kernel's ABI of Landlock; below 1: the kernel has none. */
int mk_sandbox_abi(void);

/* A rule set under construction; `fd` is -1 where the kernel has no Landlock. */
struct mk_sandbox {
    int fd;
    int abi;
};

/* Drops the capabilities of a process that is not root. Neither the process nor its descendants can gain
 * privileges through an exec. */
mk_err mk_sandbox_drop_privileges(void) MK_MUST_USE;

/* Begins a rule set. -EOPNOTSUPP: the kernel has no Landlock, and the caller continues without this extra
 * layer. */
mk_err mk_sandbox_open(struct mk_sandbox *s) MK_MUST_USE;
/* Allows reading the file, or all files and folders below the folder. A missing path is not an error. */
mk_err mk_sandbox_allow(struct mk_sandbox *s, const char *path) MK_MUST_USE;
/* Like mk_sandbox_allow(), but for an open descriptor, even if this process can no longer open its path. */
mk_err mk_sandbox_allow_fd(struct mk_sandbox *s, int fd) MK_MUST_USE;
/* Also allows writing to files below the folder and creating unlinked files (O_TMPFILE); creating, linking or
 * removing names stays forbidden. */
mk_err mk_sandbox_allow_spooling(struct mk_sandbox *s, const char *folder) MK_MUST_USE;
/* Allows reading, writing, creating, renaming and removing all files and folders below the folder. */
mk_err mk_sandbox_allow_writing(struct mk_sandbox *s, const char *folder) MK_MUST_USE;
/* Restricts only signals: the process and its descendants can send none to other processes. Does nothing if
 * the kernel lacks support (Landlock ABI 6). Needs no_new_privs. */
void mk_sandbox_scope_signals(void);
/* Allows reading the files that getaddrinfo() needs. Files that do not exist are ignored; on other errors,
 * all remaining files are still allowed, and the first error is returned. */
mk_err mk_sandbox_allow_resolver(struct mk_sandbox *s) MK_MUST_USE;
/* Allows reading the system's trust store; errors are as in mk_sandbox_allow_resolver(). */
mk_err mk_sandbox_allow_trust_store(struct mk_sandbox *s) MK_MUST_USE;
/* Enforces the rules: from now on only allowed files can be opened. Needs no_new_privs. */
mk_err mk_sandbox_enforce(struct mk_sandbox *s) MK_MUST_USE;

#endif
