/* SPDX-License-Identifier: Apache-2.0 */
/* What a section says, as a group. */
#ifndef ISOLATE_GROUP_H
#define ISOLATE_GROUP_H

#include "group_type.h"

/* Reads and checks what the section says. NULL: something is wrong, which has been reported. */
struct isolate_group *isolate_group_new(struct mk_config *config, const struct isolate_settings *settings);
/* A route leads to it. False: memory is out. */
bool isolate_group_mount(struct mk_config *config, struct isolate_group *group, mk_str pattern);
#endif
