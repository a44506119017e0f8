/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a child of the server into a process of a group. */
#ifndef ISOLATE_PROCESS_H
#define ISOLATE_PROCESS_H

#include "group_type.h"

/* The descriptors of a group's process, after the standard streams. */
enum {
    ISOLATE_LISTEN_FD = 3,
    ISOLATE_SCOREBOARD_FD,
    ISOLATE_CONFIG_FD,
    ISOLATE_STATISTICS_FD,
    ISOLATE_CONTROL_FD, /* only the supervisor has this and later descriptors */
    ISOLATE_PRESENCE_FD,
    ISOLATE_LIMITS_FD /* cgroup.procs of the group's cgroup; closed if there is none */
};

int64_t isolate_process_now_ms(void);

/* Returns whether the running program is `monkey` and can thus be executed again, and not a program that
 * embeds the library. */
bool isolate_process_is_monkey(void);

/* In a child, moves each of fds[] to 3, 4, ..., skipping -1, and closes all other descriptors. Returns false
 * on failure. */
bool isolate_process_keep_fds(const int *fds, int n);
/* In a child, applies the group's priority and the memory limit (0: none), and changes to its user. Returns 0
 * or a negated errno value. */
int isolate_process_drop_privileges(const struct isolate_group *group, uint64_t memory);
/* In a child, executes `monkey [-t] -c FILE`, where `config` is the descriptor of FILE. */
_Noreturn void isolate_process_exec(bool checks, int config, char **environment);

#endif
