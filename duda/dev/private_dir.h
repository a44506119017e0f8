/* SPDX-License-Identifier: Apache-2.0 */
/* The private folder of `monkey run`, for sockets and configurations. */
#ifndef DUDA_DEV_PRIVATE_DIR_H
#define DUDA_DEV_PRIVATE_DIR_H

#include "paths.h"

/* Makes one; where one was left by a `monkey run` that was killed, removes that. False: reported. */
bool dev_private_dir_create(char folder[PATH_MAX]);
/* Removes it with what we have written into it. */
void dev_private_dir_remove(const char *folder);

#endif
