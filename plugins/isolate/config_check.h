/* SPDX-License-Identifier: Apache-2.0 */
/* Has a process of the group look at its configuration, before it is taken. */
#ifndef ISOLATE_CONFIG_CHECK_H
#define ISOLATE_CONFIG_CHECK_H

#include "group_type.h"

/* False: it would not start, and what it says has been reported. */
bool isolate_config_check(struct mk_config *config, const struct isolate_group *group);

#endif
