/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of configuration files: resolves relative paths, and expands the patterns of @INCLUDE. */
#ifndef MK_CONF_PATH_H
#define MK_CONF_PATH_H

#include "base/arena.h"
#include "conf/io.h"

/* Resolves `path` relative to the folder of the file `from`, without `./` and repeated slashes; absent when
 * out of memory. Keeps `..`, since only the file system knows where it leads. */
mk_str mk_conf_path_resolve(struct mk_arena *a, mk_str from, mk_str path) MK_MUST_USE;

/* Like mk_conf_path_resolve(), but relative to a folder. */
mk_str mk_conf_path_resolve_in(struct mk_arena *a, mk_str folder, mk_str path) MK_MUST_USE;

/* Does the path contain `*`, `?` or `[`? */
bool mk_conf_path_is_pattern(mk_str path);

struct mk_conf_path_list {
    mk_str *v;
    size_t n;
};

/* Finds the paths that match the pattern, in byte order. Omits file names that begin with a dot unless the
 * file name in the pattern does, and file names that end with a tilde unless the file name in the pattern
 * does. Stores at most MK_CONF_FILES_MAX + 1 paths. */
mk_err mk_conf_path_glob(struct mk_arena *a, const struct mk_conf_io *io, mk_str pattern,
                         struct mk_conf_path_list *out) MK_MUST_USE;

#endif
