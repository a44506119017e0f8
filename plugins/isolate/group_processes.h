/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, reloads and stops the processes of a group, in the master. */
#ifndef ISOLATE_GROUP_PROCESSES_H
#define ISOLATE_GROUP_PROCESSES_H

#include "group_type.h"

/* Applies this configuration to the group's processes. Only the master calls this. Returns false after
 * reporting an error. */
bool isolate_group_start(struct mk_config *config, struct isolate_group *group);
/* Releases this configuration. Returns true if it was the last one with this group, whose processes must stop
 * now. */
bool isolate_group_release(struct isolate_group *group);
/* Closes the master's resources of the group. If `waits` is set, waits a few seconds for the group's
 * processes to exit. */
void isolate_group_close(struct isolate_group *group, bool waits);
/* Keeps the group serving while this process lives. Workers of the front server call this. */
void isolate_group_hold_presence(const struct isolate_group *group);

#endif
