/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a group: what it needs of that of the server, which may have secrets of others. */
#ifndef ISOLATE_ENVIRONMENT_H
#define ISOLATE_ENVIRONMENT_H

#include "group_type.h"

/* Secrets of Duda's cookies: each group gets some of its own, made from those of the server. */
#define ISOLATE_KEYS "DUDA_KEYS"

/* Has a variable this form, and is it none that this plugin sets? */
bool isolate_environment_may_inherit(mk_str name);
/* For execve(2), out of `all`, and with the lines `ours` at its end. It is never freed. NULL: memory is out. */
char **isolate_environment_build(const struct isolate_group *group, char *const *all, char *const *ours);

#endif
