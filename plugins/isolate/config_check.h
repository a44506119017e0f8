/* SPDX-License-Identifier: Apache-2.0 */
/* Has a process of the group check its configuration before that is accepted. */
#ifndef ISOLATE_CONFIG_CHECK_H
#define ISOLATE_CONFIG_CHECK_H

#include "group_type.h"

/* False: it would not start; its output was reported. */
bool isolate_config_check(struct mk_config *config, const struct isolate_group *group);

#endif
