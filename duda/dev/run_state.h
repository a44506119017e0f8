/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps sessions, values of stores and the key of cookies while `monkey run` replaces the server. */
#ifndef DUDA_DEV_RUN_STATE_H
#define DUDA_DEV_RUN_STATE_H

#include "paths.h"

/* Tells the servers where they keep this state: memory files in the private `folder`, and a random key in the
 * cache folder, which belongs to the project and also outlives `monkey run`. Sets an environment variable of
 * this process, which the servers inherit. Without it, each server begins with empty state. */
void dev_run_state_export(const struct dev_paths *paths, const char *folder, const char *project);
/* Removes the memory files. */
void dev_run_state_remove(const char *folder);

#endif
