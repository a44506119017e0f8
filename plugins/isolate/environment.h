/* SPDX-License-Identifier: Apache-2.0 */
/* Environment of a group: the necessary part of the server's, which may contain secrets of others. */
#ifndef ISOLATE_ENVIRONMENT_H
#define ISOLATE_ENVIRONMENT_H

#include "group_type.h"

/* Duda's cookie keys: each group gets its own, derived from the server's. */
#define ISOLATE_KEYS "DUDA_KEYS"

/* Does the variable have this form, without being one that this plugin sets? */
bool isolate_environment_may_inherit(mk_str name);
/* For execve(2), from `all`, followed by `ours`. Never freed. NULL: out of memory. */
char **isolate_environment_build(const struct isolate_group *group, char *const *all, char *const *ours);

#endif
