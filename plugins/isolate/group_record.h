/* SPDX-License-Identifier: Apache-2.0 */
/* The records of all groups. They are in private memory of the master, because its actions as root depend on
 * them. */
#ifndef ISOLATE_GROUP_RECORD_H
#define ISOLATE_GROUP_RECORD_H

#include "group_type.h"

/* Acquires the record of the group with this name until the configuration is released. Returns NULL if out of
 * memory. */
struct isolate_record *isolate_record_acquire(struct mk_config *config, const char *name);
/* Frees the record if no configuration uses it. */
void isolate_record_free_if_unused(struct isolate_record *record);
/* Closes descriptors that children must not have. */
void isolate_record_close_private_fds(struct isolate_record *record);
/* Returns whether a worker that could send requests to the group is alive, which its file lock shows. */
bool isolate_record_has_live_workers(int presence_fd);

#endif
