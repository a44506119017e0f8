/* SPDX-License-Identifier: Apache-2.0 */
/* The private folders of `monkey run`, for sockets and configurations, and of `monkey test`, for the data of
 * tests. */
#ifndef DUDA_DEV_PRIVATE_DIR_H
#define DUDA_DEV_PRIVATE_DIR_H

#include "paths.h"

/* Creates the folder, and removes folders that a killed `monkey run` has left. On failure, reports the error
 * and returns false. */
bool dev_private_dir_create(char folder[PATH_MAX]);
/* Removes the folder and our files in it. */
void dev_private_dir_remove(const char *folder);
/* Creates the private folder of `monkey test`, and locks it until it is removed. */
bool dev_private_dir_create_for_tests(char folder[PATH_MAX]);
/* Removes that folder with everything in it. */
void dev_private_dir_remove_tree(const char *folder);

#endif
