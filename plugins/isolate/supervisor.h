/* SPDX-License-Identifier: Apache-2.0 */
/* The process that keeps a group running: it starts the server of the group, starts it again when it has
 * died, and hands on what it logs. */
#ifndef ISOLATE_SUPERVISOR_H
#define ISOLATE_SUPERVISOR_H

#include "group_type.h"
#include "lifecycle.h"

/* The answer to an order of the master, when the group has done it. */
struct isolate_supervisor_reply {
    char order;
    bool serves;
};

enum { ISOLATE_SUPERVISOR_FDS = 6 };

/* Runs it: in a child of the master, with the descriptors ISOLATE_LISTEN_FD and so on (process.h). Without
 * the master it ends when those end that have locked that of presence. */
_Noreturn void isolate_supervisor_run(const struct isolate_group *group,
                                      const int fds[ISOLATE_SUPERVISOR_FDS]);

#endif
