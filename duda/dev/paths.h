/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of the program, its shared objects and its headers, in a build tree or installed, and of the user's
 * cache. */
#ifndef DUDA_DEV_PATHS_H
#define DUDA_DEV_PATHS_H

#include <limits.h>
#include <stdbool.h>

struct dev_paths {
    char program[PATH_MAX];
    char objects[PATH_MAX]; /* folder of monkey-duda.so and its packages; empty: missing */
    char headers[2][PATH_MAX];
    unsigned n_headers;
    char cache[PATH_MAX]; /* the user's cache folder, which exists */
};

/* On failure, reports the error and returns false. */
bool dev_paths_find(struct dev_paths *p);
/* Creates a folder in one that other users can also write to, so another user may have created it already.
 * Returns false unless the folder belongs to us and only we can access it. */
bool dev_paths_make_private_dir(const char *folder);
/* Formats a path like snprintf(3). Returns false if it does not fit. */
bool dev_paths_format(char path[PATH_MAX], const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
