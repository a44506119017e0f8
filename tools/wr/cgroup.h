/* SPDX-License-Identifier: Apache-2.0 */
/* A version 2 control group. Its CPU time is exact and includes processes that have already exited. */
#ifndef WR_CGROUP_H
#define WR_CGROUP_H

#include "wr/process.h"

/* Writes the NUL-terminated path of the process's cgroup. -ENOENT if it is only in the root cgroup. */
mk_err wr_cgroup_find(pid_t pid, struct mk_buf *path) MK_MUST_USE;
/* Calls fn for each process in the cgroup and its descendants; stops with -ECANCELED when fn returns
 * false. */
mk_err wr_cgroup_visit_processes(const char *path, bool (*fn)(void *data, pid_t pid), void *data) MK_MUST_USE;
bool wr_cgroup_read_cpu(const char *path, struct wr_cpu *out) MK_MUST_USE;

#endif
