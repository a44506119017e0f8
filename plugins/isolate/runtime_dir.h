/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime folder of a group, with its socket and an empty document root. */
#ifndef ISOLATE_RUNTIME_DIR_H
#define ISOLATE_RUNTIME_DIR_H

#include "group_type.h"

enum { ISOLATE_ROOT_MAX = 96 };

/* Writes the path of the empty folder. Returns false if it is too long. */
bool isolate_runtime_dir_format_empty_root(const struct isolate_record *record, char root[ISOLATE_ROOT_MAX]);
/* Returns a unique name: "monkey-" and a number. */
const char *isolate_runtime_dir_name(const struct isolate_record *record);
/* Creates the folders and the socket, and listens. Returns 0 or a negated errno value. */
int isolate_runtime_dir_create(struct isolate_record *record);
/* Removes the folder, even if only part of it exists. */
void isolate_runtime_dir_remove(const struct isolate_record *record);

#endif
