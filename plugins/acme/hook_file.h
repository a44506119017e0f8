/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the program that changes DNS records. The plugin checks it while the configuration is loaded, and
 * monkey-acme before each start. */
#ifndef ACME_HOOK_FILE_H
#define ACME_HOOK_FILE_H

#include <sys/types.h>

/* Returns why the program must not be started by a user with this ID, or NULL if it may: it must be an
 * executable regular file that only root or that user can change. */
const char *acme_hook_file_problem(const char *path, uid_t user);

#endif
