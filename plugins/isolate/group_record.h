/* SPDX-License-Identifier: Apache-2.0 */
/* The records of all groups. They are memory of the master alone: what it does as root depends on them. */
#ifndef ISOLATE_GROUP_RECORD_H
#define ISOLATE_GROUP_RECORD_H

#include "group_type.h"

/* That of the group of this name, which this configuration uses until it is released. NULL: memory is out. */
struct isolate_record *isolate_record_acquire(struct mk_config *config, const char *name);
/* Frees it if no configuration uses it. */
void isolate_record_free_if_unused(struct isolate_record *record);
/* Closes what children must not have. */
void isolate_record_close_private_fds(struct isolate_record *record);
/* Does any worker live that could ask the group for something? By what those have locked. */
bool isolate_record_has_live_workers(int presence_fd);

#endif
