/* SPDX-License-Identifier: Apache-2.0 */
/* The private folder of `monkey run`, for sockets and configurations. */
#ifndef DUDA_DEV_PRIVATE_DIR_H
#define DUDA_DEV_PRIVATE_DIR_H

#include "paths.h"

/* Creates the folder, and removes folders that a killed `monkey run` has left. On failure, reports the error
 * and returns false. */
bool dev_private_dir_create(char folder[PATH_MAX]);
/* Removes the folder and our files in it. */
void dev_private_dir_remove(const char *folder);

#endif
