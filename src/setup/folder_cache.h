/* SPDX-License-Identifier: Apache-2.0 */
/* Shared descriptors of served folders. Hosts and generations with the same folder share one descriptor: a
 * reload opens only new folders. */
#ifndef MK_SETUP_FOLDER_CACHE_H
#define MK_SETUP_FOLDER_CACHE_H

#include <stddef.h>

#include "base/err.h"

struct mk_cached_folder;

struct mk_folder_cache {
    struct mk_cached_folder **buckets;
    size_t n, n_buckets;
};

/* Opens the folder that `path` currently refers to, or finds its descriptor. A path that now leads to another
 * folder, such as a replaced link, gets a new descriptor. Release *fd with mk_folder_cache_release(). */
mk_err mk_folder_cache_acquire(struct mk_folder_cache *f, const char *path, int *fd) MK_MUST_USE;
/* Releases the descriptor, closes it after the last user, and sets *fd to -1. *fd may already be -1. */
void mk_folder_cache_release(struct mk_folder_cache *f, int *fd);
/* Closes all descriptors. */
void mk_folder_cache_fini(struct mk_folder_cache *f);

#endif
