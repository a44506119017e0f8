/* SPDX-License-Identifier: Apache-2.0 */
/* Giving up what a worker never needs: new privileges, and files outside of its folders (Landlock). */
#ifndef MK_OS_SANDBOX_H
#define MK_OS_SANDBOX_H

#include "base/err.h"

/* The rules being gathered; `fd` is -1 where the kernel has no Landlock. */
struct mk_sandbox {
    int fd;
    int abi;
};

/* No descendant of this process ever gains privileges by an exec. */
mk_err mk_sandbox_no_new_privs(void) MK_MUST_USE;

/* -EOPNOTSUPP where there is no Landlock: nothing to do then, and nothing lost but a wall. */
mk_err mk_sandbox_open(struct mk_sandbox *s) MK_MUST_USE;
/* The file, or files and folders below that one, may be read. A path that is not there is no error: nothing
 * can be allowed there. */
mk_err mk_sandbox_allow(struct mk_sandbox *s, const char *path) MK_MUST_USE;
/* The same for what is open already, whoever may open it now. */
mk_err mk_sandbox_allow_fd(struct mk_sandbox *s, int fd) MK_MUST_USE;
/* From here on only what was allowed can be opened. Needs no_new_privs. */
mk_err mk_sandbox_close(struct mk_sandbox *s) MK_MUST_USE;

#endif
