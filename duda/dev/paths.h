/* SPDX-License-Identifier: Apache-2.0 */
/* Where things are: the program, its objects and headers, in a build or installed, and the cache of the user.
 */
#ifndef DUDA_DEV_PATHS_H
#define DUDA_DEV_PATHS_H

#include <limits.h>
#include <stdbool.h>

struct dev_paths {
    char program[PATH_MAX];
    char objects[PATH_MAX]; /* the folder of monkey-duda.so and its packages; empty: they are not there */
    char headers[2][PATH_MAX];
    unsigned n_headers;
    char cache[PATH_MAX]; /* exists */
};

/* False: reported. */
bool dev_paths_find(struct dev_paths *p);
/* Makes the folder, where others may write, too, and may have made it before us: false unless it is a folder
 * of ours alone. */
bool dev_paths_make_private_dir(const char *folder);
/* As snprintf(3) into a path; false if it does not fit. */
bool dev_paths_format(char path[PATH_MAX], const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
