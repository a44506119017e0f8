/* SPDX-License-Identifier: Apache-2.0 */
/* The file `.env` next to a service: environment variables for development, such as passwords. */
#ifndef DUDA_DEV_ENV_FILE_H
#define DUDA_DEV_ENV_FILE_H

#include "argv.h"

enum { DEV_ENV_VARS_MAX = 2048 };

/* The environment for a program: the variables of this process, and those of the file that this process
 * lacks. */
struct dev_env {
    struct dev_argv own; /* words NAME=VALUE */
    char *vars[DEV_ENV_VARS_MAX + 1];
};

/* Reads the file, with a line NAME=VALUE for each variable; a missing file sets none. If the file is invalid,
 * appends messages in the format of a compiler to `errors`, and returns false. Free the result with
 * dev_env_free() in either case. */
bool dev_env_read(struct dev_env *env, const char *path, struct mk_buf *errors);
void dev_env_free(struct dev_env *env);

#endif
