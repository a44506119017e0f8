/* SPDX-License-Identifier: Apache-2.0 */
/* Creates a group from its section. */
#ifndef ISOLATE_GROUP_H
#define ISOLATE_GROUP_H

#include "group_type.h"

/* Parses and validates the section. Returns NULL after reporting an error. */
struct isolate_group *isolate_group_new(struct mk_config *config, const struct isolate_settings *settings);
/* Records a route to the group. Returns false if out of memory. */
bool isolate_group_mount(struct mk_config *config, struct isolate_group *group, mk_str pattern);
#endif
