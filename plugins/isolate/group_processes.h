/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of a group in the master: starting, reloading and stopping them. */
#ifndef ISOLATE_GROUP_PROCESSES_H
#define ISOLATE_GROUP_PROCESSES_H

#include "group_type.h"

/* Master only: applies this configuration to its processes. False: error, reported. */
bool isolate_group_start(struct mk_config *config, struct isolate_group *group);
/* This configuration is released. True: it was the last one with this group, whose processes must stop
 * now. */
bool isolate_group_release(struct isolate_group *group);
/* Closes the master's resources of the group. `waits`: after its processes have exited, unless that takes
 * long. */
void isolate_group_close(struct isolate_group *group, bool waits);
/* In a worker of the front server: the group keeps serving while this process lives. */
void isolate_group_hold_presence(const struct isolate_group *group);

#endif
