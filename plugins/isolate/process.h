/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a child of the server into a process of a group. */
#ifndef ISOLATE_PROCESS_H
#define ISOLATE_PROCESS_H

#include "group_type.h"

/* Descriptors of a group's process, after the standard streams. */
enum {
    ISOLATE_LISTEN_FD = 3,
    ISOLATE_SCOREBOARD_FD,
    ISOLATE_CONFIG_FD,
    ISOLATE_CONTROL_FD, /* this and later ones: supervisor only */
    ISOLATE_PRESENCE_FD,
    ISOLATE_LIMITS_FD /* of its cgroup; absent: none */
};

int64_t isolate_process_now_ms(void);

/* Is the running program `monkey`, so that it can be executed again? False in a program that embeds the
 * library. */
bool isolate_process_is_monkey(void);

/* In a child: moves each of fds[] to 3, 4, ..., and closes all others. -1 is skipped. False: failed. */
bool isolate_process_keep_fds(const int *fds, int n);
/* In a child: applies the group's priority and the memory limit (0: none), and changes to its user. 0 or a
 * negated errno value. */
int isolate_process_confine(const struct isolate_group *group, uint64_t memory);
/* In a child: executes the program, `monkey [-t] -c FILE`. `config` is a descriptor. */
_Noreturn void isolate_process_exec(bool checks, int config, char **environment);

#endif
