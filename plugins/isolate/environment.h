/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a group. The environment of the server may contain secrets of other services, so a group
 * gets only the necessary part of it. */
#ifndef ISOLATE_ENVIRONMENT_H
#define ISOLATE_ENVIRONMENT_H

#include "group_type.h"

/* Duda's cookie keys. Each group gets its own keys, derived from the server's. */
#define ISOLATE_KEYS "DUDA_KEYS"

/* Returns whether the name is valid and not that of a variable that this plugin sets. */
bool isolate_environment_may_inherit(mk_str name);
/* Builds an environment for execve(2) from `all`, followed by `ours`. The result is never freed. Returns NULL
 * if out of memory. */
char **isolate_environment_build(const struct isolate_group *group, char *const *all, char *const *ours);

#endif
