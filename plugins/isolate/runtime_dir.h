/* SPDX-License-Identifier: Apache-2.0 */
/* Runtime folder of a group: its socket, and an empty document root. */
#ifndef ISOLATE_RUNTIME_DIR_H
#define ISOLATE_RUNTIME_DIR_H

#include "group_type.h"

enum { ISOLATE_ROOT_MAX = 96 };

/* Path of the empty folder. False: too long. */
bool isolate_runtime_dir_empty_root(const struct isolate_record *record, char root[ISOLATE_ROOT_MAX]);
/* Unique name: "monkey-" and a number. */
const char *isolate_runtime_dir_name(const struct isolate_record *record);
/* Creates everything, and listens. 0 or a negated errno value. */
int isolate_runtime_dir_create(struct isolate_record *record);
/* Removes the folder, even if only part of it exists. */
void isolate_runtime_dir_remove(const struct isolate_record *record);

#endif
