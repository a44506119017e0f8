/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor process of a group starts its server, restarts it after a crash, and forwards its output. */
#ifndef ISOLATE_SUPERVISOR_H
#define ISOLATE_SUPERVISOR_H

#include "group_type.h"
#include "lifecycle.h"

/* Confirms to the master that the group has executed a command. */
struct isolate_supervisor_reply {
    char order;
    bool serves;
};

enum { ISOLATE_SUPERVISOR_FDS = 7 };

/* Runs the supervisor in a child of the master; its descriptors start at ISOLATE_LISTEN_FD (process.h). After
 * the master's death, the supervisor exits when all processes that hold presence locks have exited. */
_Noreturn void isolate_supervisor_run(const struct isolate_group *group,
                                      const int fds[ISOLATE_SUPERVISOR_FDS]);

#endif
