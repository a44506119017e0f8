/* SPDX-License-Identifier: Apache-2.0 */
/* From text to tree: sections, entries, @INCLUDE, @SET and ${NAME}. The format is described in
 * docs/reference/configuration-format.md. Nothing here opens a file: the caller's ops do. */
#ifndef MK_CONF_READ_H
#define MK_CONF_READ_H

#include "conf/tree.h"

enum {
    MK_CONF_LINE_MAX = 4096,     /* bytes of a line without its end, and of a value after replacement */
    MK_CONF_FILE_MAX = 1 << 20,  /* bytes of a file */
    MK_CONF_FILES_MAX = 1024,    /* files of one configuration */
    MK_CONF_TOTAL_MAX = 8 << 20, /* bytes of all its files */
    MK_CONF_DEPTH_MAX = 16       /* files that are open at once: each included by the one before */
};

/* How the reader sees the world. `glob` and `env` may be NULL: then no pattern matches and no name is known.
 */
struct mk_conf_io {
    /* Appends the file to `out`; 0 or a negative errno. A failed `out` means -EFBIG, unless it has room left
     * up to its limit: then it is -ENOMEM. */
    mk_err (*read)(void *ctx, mk_str path, struct mk_buf *out);
    /* Calls found() for every path that matches, in any order, until it answers false; 0 (also if nothing
     * matches) or a negative errno. The pattern is as in glob(3); the path need only live as long as the
     * call. */
    mk_err (*glob)(void *ctx, mk_str pattern, bool (*found)(void *data, mk_str path), void *data);
    /* The value of a variable of the environment, absent if it is not set; must live as long as the reading.
     */
    mk_str (*env)(void *ctx, mk_str name);
    void *ctx;
};

/* Reads a file and what it includes into `tree` (appending). Goes on after a mistake; all of them are in
 * `report`. 0, -EINVAL if the report has errors, -ENOMEM. Everything that the tree points to is in `arena`.
 */
mk_err mk_conf_read_file(struct mk_conf_tree *tree, struct mk_arena *arena, const struct mk_conf_io *io,
                         mk_str path, struct mk_conf_report *report) MK_MUST_USE;

/* The same for text that comes from elsewhere. `name` stands for the file in messages, and its folder is
 * where
 * @INCLUDE looks. Both are copied. */
mk_err mk_conf_read_text(struct mk_conf_tree *tree, struct mk_arena *arena, const struct mk_conf_io *io,
                         mk_str name, mk_str text, struct mk_conf_report *report) MK_MUST_USE;

#endif
