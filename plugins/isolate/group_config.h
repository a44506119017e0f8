/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file of a group's processes. */
#ifndef ISOLATE_GROUP_CONFIG_H
#define ISOLATE_GROUP_CONFIG_H

#include "group_type.h"

/* Writes the configuration to the memory file `fd`, replacing the previous one. `root` is an empty folder,
 * because the group serves no files. Returns 0 or a negated errno value. */
int isolate_group_config_write(const struct isolate_group *group, const char *root, int fd);

#endif
