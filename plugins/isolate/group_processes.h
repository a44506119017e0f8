/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a group, as the master starts, reloads and ends them. */
#ifndef ISOLATE_GROUP_PROCESSES_H
#define ISOLATE_GROUP_PROCESSES_H

#include "group_type.h"

/* In the master: its processes run with this configuration. False: that has been reported. */
bool isolate_group_start(struct mk_config *config, struct isolate_group *group);
/* This configuration is released. True: it was the last with this group, whose processes are to end now. */
bool isolate_group_release(struct isolate_group *group);
/* Closes what the master had of it. `waits`: when they have ended, if that does not take long. */
void isolate_group_close(struct isolate_group *group, bool waits);
/* In a worker of the server in front: while this process lives, the group serves. */
void isolate_group_hold_presence(const struct isolate_group *group);

#endif
