/* SPDX-License-Identifier: Apache-2.0 */
/* A control group (version 2): its processor time is exact, and holds what its processes used that are gone.
 */
#ifndef WR_CGROUP_H
#define WR_CGROUP_H

#include "wr/process.h"

/* Writes the folder of the group that the process is in, with a NUL behind it. -ENOENT when there is none but
 * the root. */
mk_err wr_cgroup_find(pid_t pid, struct mk_buf *path) MK_MUST_USE;
/* Calls fn for each process in it and in the groups below it, until that is false: -ECANCELED. */
mk_err wr_cgroup_each(const char *path, bool (*fn)(void *data, pid_t pid), void *data) MK_MUST_USE;
bool wr_cgroup_read_cpu(const char *path, struct wr_cpu *out) MK_MUST_USE;

#endif
