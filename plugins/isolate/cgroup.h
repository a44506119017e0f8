/* SPDX-License-Identifier: Apache-2.0 */
/* The control group (cgroup v2) that limits the total CPU time and memory of a group's processes. */
#ifndef ISOLATE_CGROUP_H
#define ISOLATE_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct isolate_cgroup_limits {
    uint32_t cpu;    /* percent of one CPU; 0: no limit */
    uint64_t memory; /* bytes; 0: no limit */
};

static inline bool isolate_cgroup_has_limits(const struct isolate_cgroup_limits *l)
{
    return l->cpu || l->memory;
}

/* The location of cgroups, and our own cgroup. */
struct isolate_cgroup_path {
    char mount[PATH_MAX / 4]; /* such as "/sys/fs/cgroup" */
    char own[PATH_MAX / 4];   /* such as "/system.slice/monkey.service" */
};

enum { ISOLATE_CGROUP_ERROR_MAX = 512 };

/* Finds the cgroup of this process, according to `proc` ("/proc/self"). Returns false if there is none;
 * `error` then says what to do. */
bool isolate_cgroup_find_own(const char *proc, struct isolate_cgroup_path *out,
                             char error[ISOLATE_CGROUP_ERROR_MAX]);
/* Returns whether limits can probably be set there, without changing anything. If not, `error` says what to
 * do. */
bool isolate_cgroup_check_limits(const struct isolate_cgroup_path *place,
                                 const struct isolate_cgroup_limits *limits,
                                 char error[ISOLATE_CGROUP_ERROR_MAX]);
/* Creates the cgroup `name` with these limits; returns a descriptor of its cgroup.procs, or -1. A server with
 * its own cgroup first moves into a child cgroup, as the kernel requires. */
int isolate_cgroup_create(const struct isolate_cgroup_path *place, const char *name,
                          const struct isolate_cgroup_limits *limits, char error[ISOLATE_CGROUP_ERROR_MAX]);
/* Removes the cgroup. Its processes must have exited. */
void isolate_cgroup_remove(const struct isolate_cgroup_path *place, const char *name);

#endif
