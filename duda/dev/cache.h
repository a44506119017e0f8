/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of compiled objects. Next to each object are a list of its input files, with their hash, and the
 * compiler's warnings, if there are any. */
#ifndef DUDA_DEV_CACHE_H
#define DUDA_DEV_CACHE_H

#include "paths.h"

#include <monkey/buf.h>

struct dev_cache_entry {
    char object[PATH_MAX], list[PATH_MAX], warnings[PATH_MAX];
};

/* Sets the paths of the object that belongs to this key, whether the object exists or not. `ending` is the
 * extension of its name, such as ".so". */
bool dev_cache_locate(const struct dev_paths *paths, mk_str key, const char *ending,
                      struct dev_cache_entry *entry);
/* Returns whether the object exists and its input files have not changed. If so, replaces `files` with the
 * list of these files, sets `stamp` to their hash, and appends the warnings to `messages`. */
bool dev_cache_lookup(const struct dev_cache_entry *entry, struct mk_buf *files, uint64_t *stamp,
                      struct mk_buf *messages);
/* Writes the list of the input files, and the warnings. */
void dev_cache_write_list(const struct dev_cache_entry *entry, mk_str files, uint64_t stamp, mk_str warnings);
/* Replaces a file: processes that read it at the same time see the old or the new content. Returns false on
 * failure. */
bool dev_cache_write_file(const char *path, mk_str text);
/* Removes objects that have not been used for a week. */
void dev_cache_clean(const struct dev_paths *paths);

#endif
