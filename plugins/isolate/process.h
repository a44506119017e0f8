/* SPDX-License-Identifier: Apache-2.0 */
/* Becoming a process of a group. */
#ifndef ISOLATE_PROCESS_H
#define ISOLATE_PROCESS_H

#include "group_type.h"

/* Descriptors of a process of a group, behind those of the standard streams. */
enum {
    ISOLATE_LISTEN_FD = 3,
    ISOLATE_SCOREBOARD_FD,
    ISOLATE_CONFIG_FD,
    ISOLATE_CONTROL_FD, /* this and what follows: of the keeper alone */
    ISOLATE_PRESENCE_FD,
    ISOLATE_LIMITS_FD /* of its control group; not there: it has none */
};

int64_t isolate_process_now_ms(void);

/* Is this the program `monkey`, so that it can be started again? A library is not. */
bool isolate_process_is_monkey(void);

/* In a child: moves each of fds[] to 3, 4, ..., and closes all others. -1 among them is left out. False: no.
 */
bool isolate_process_keep_fds(const int *fds, int n);
/* In a child: gives way as the group does, has no more memory than `memory` (0: no limit), and becomes the
 * user of the group. 0 or a negated errno value. */
int isolate_process_confine(const struct isolate_group *group, uint64_t memory);
/* In a child: becomes the program, `monkey [-t] -c FILE`. `config` is a descriptor. */
_Noreturn void isolate_process_exec(bool checks, int config, char **environment);

#endif
