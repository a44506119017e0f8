/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a process of the group to check the configuration before the server accepts it. */
#ifndef ISOLATE_CONFIG_CHECK_H
#define ISOLATE_CONFIG_CHECK_H

#include "group_type.h"

/* Returns false if the group would not start, after reporting the output of the check. Otherwise sets
 * group->routes, unless another process has made the check. */
bool isolate_config_check(struct mk_config *config, struct isolate_group *group);

#endif
