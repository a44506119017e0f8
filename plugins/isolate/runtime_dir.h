/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a group, with its socket and an empty folder: the group has no files to serve. */
#ifndef ISOLATE_RUNTIME_DIR_H
#define ISOLATE_RUNTIME_DIR_H

#include "group_type.h"

enum { ISOLATE_ROOT_MAX = 96 };

/* The path of the empty folder. False: it is too long. */
bool isolate_runtime_dir_empty_root(const struct isolate_record *record, char root[ISOLATE_ROOT_MAX]);
/* Of no other group: "monkey-" and a number. */
const char *isolate_runtime_dir_name(const struct isolate_record *record);
/* Makes all of it, and listens. 0 or a negated errno value. */
int isolate_runtime_dir_create(struct isolate_record *record);
/* Removes what is there of it. */
void isolate_runtime_dir_remove(const struct isolate_record *record);

#endif
