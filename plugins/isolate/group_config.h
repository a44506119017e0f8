/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of a group, as its processes read it. */
#ifndef ISOLATE_GROUP_CONFIG_H
#define ISOLATE_GROUP_CONFIG_H

#include "group_type.h"

/* Puts it into a file in memory, in place of what was there. `root` is an empty folder: there are no files to
 * serve. 0 or a negated errno value. */
int isolate_group_config_write(const struct isolate_group *group, const char *root, int fd);

#endif
