/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of the folders that hosts serve. Hosts with the same folder share one descriptor, and so do the
 * generations of a configuration: a reload opens only the folders that are new. */
#ifndef MK_SETTINGS_FOLDER_CACHE_H
#define MK_SETTINGS_FOLDER_CACHE_H

#include <stddef.h>

#include "base/err.h"

struct mk_cached_folder;

struct mk_folder_cache {
    struct mk_cached_folder **buckets;
    size_t n, n_buckets;
};

/* Opens the folder that `path` leads to now, or finds its descriptor. A path that leads to another folder than
 * before, such as a link that was replaced, gets another descriptor. Release *fd with mk_folder_cache_release(). */
mk_err mk_folder_cache_acquire(struct mk_folder_cache *f, const char *path, int *fd) MK_MUST_USE;
/* Closes the descriptor when its last user releases it, and sets *fd to -1. It may be -1 already. */
void mk_folder_cache_release(struct mk_folder_cache *f, int *fd);
/* Closes all. */
void mk_folder_cache_fini(struct mk_folder_cache *f);

#endif
