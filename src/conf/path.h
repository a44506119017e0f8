/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of configuration files, as text: which file an @INCLUDE means, and whether two are the same. */
#ifndef MK_CONF_PATH_H
#define MK_CONF_PATH_H

#include "conf/read.h"

/* `path` as seen from the folder of the file `from`, without `./` and doubled slashes; absent when memory is
 * out. A
 * `..` stays: where it leads is the file system's business. */
mk_str mk_conf_path_join(struct mk_arena *a, mk_str from, mk_str path) MK_MUST_USE;

/* Does it hold any of * ? [ ? */
bool mk_conf_path_is_pattern(mk_str path);

struct mk_conf_path_list {
    mk_str *v;
    size_t n;
};

/* The files that match, in byte order. Names that begin with a dot or end with a tilde are left out, unless
 * the pattern itself ends so. At most MK_CONF_FILES_MAX + 1. */
mk_err mk_conf_path_glob(struct mk_arena *a, const struct mk_conf_io *io, mk_str pattern,
                         struct mk_conf_path_list *out) MK_MUST_USE;

#endif
