/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of the folders that hosts serve. Hosts with the same folder share one descriptor, and so do the
 * generations of a configuration: a reload opens only the folders that are new. */
#ifndef MK_SETTINGS_FOLDERS_H
#define MK_SETTINGS_FOLDERS_H

#include <stddef.h>

#include "base/err.h"

struct mk_folder;

struct mk_folders {
    struct mk_folder **buckets;
    size_t n, n_buckets;
};

/* Opens the folder that `path` leads to now, or finds its descriptor. A path that leads to another folder than
 * before, such as a link that was replaced, gets another descriptor. Release *fd with mk_folders_release(). */
mk_err mk_folders_acquire(struct mk_folders *f, const char *path, int *fd) MK_MUST_USE;
/* Closes the descriptor when its last user releases it, and sets *fd to -1. It may be -1 already. */
void mk_folders_release(struct mk_folders *f, int *fd);
/* Closes all. */
void mk_folders_fini(struct mk_folders *f);

#endif
