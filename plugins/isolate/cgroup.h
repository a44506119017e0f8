/* SPDX-License-Identifier: Apache-2.0 */
/* A control group (cgroups, version 2) for all processes of one group: how much of the processors and of the
 * memory they may have together. */
#ifndef ISOLATE_CGROUP_H
#define ISOLATE_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct isolate_cgroup_limits {
    uint32_t cpu;    /* percent of one processor; 0: no limit */
    uint64_t memory; /* bytes; 0: no limit */
};

static inline bool isolate_cgroup_has_limits(const struct isolate_cgroup_limits *l)
{
    return l->cpu || l->memory;
}

/* Where control groups are, and which one is ours. */
struct isolate_cgroup_path {
    char mount[PATH_MAX / 4]; /* "/sys/fs/cgroup" */
    char own[PATH_MAX / 4];   /* "/system.slice/monkey.service" */
};

enum { ISOLATE_CGROUP_ERROR_MAX = 512 };

/* The place of this process, as `proc` tells ("/proc/self"). False: there is none, and `why` says what to do.
 */
bool isolate_cgroup_find_own(const char *proc, struct isolate_cgroup_path *out,
                             char why[ISOLATE_CGROUP_ERROR_MAX]);
/* Does this place look as if they could be set there? False: `why` says what to do. Changes nothing. */
bool isolate_cgroup_check_limits(const struct isolate_cgroup_path *place,
                                 const struct isolate_cgroup_limits *limits,
                                 char why[ISOLATE_CGROUP_ERROR_MAX]);
/* Makes the control group `name`, with these limits, and answers a descriptor of its file cgroup.procs, or
 * -1. A server that is in a control group of its own moves into a part of it first, as the kernel wants it.
 */
int isolate_cgroup_create(const struct isolate_cgroup_path *place, const char *name,
                          const struct isolate_cgroup_limits *limits, char why[ISOLATE_CGROUP_ERROR_MAX]);
/* Removes it. Its processes must have ended. */
void isolate_cgroup_remove(const struct isolate_cgroup_path *place, const char *name);

#endif
