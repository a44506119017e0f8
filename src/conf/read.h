/* SPDX-License-Identifier: Apache-2.0 */
/* Parses text into a tree of sections and entries; executes @INCLUDE and @SET, and expands ${NAME}.
 * docs/reference/configuration-format.md describes the format. Opens files only through struct mk_conf_io. */
#ifndef MK_CONF_READ_H
#define MK_CONF_READ_H

#include "conf/io.h"
#include "conf/tree.h"

/* Reads a file and its includes, and appends their sections to `tree`. Continues after errors, so that
 * `report` lists all of them. Returns 0, -EINVAL if the report has errors, or -ENOMEM. The tree points into
 * `arena` only. */
mk_err mk_conf_read_file(struct mk_conf_tree *tree, struct mk_arena *arena, const struct mk_conf_io *io,
                         mk_str path, struct mk_conf_report *report) MK_MUST_USE;

/* Like mk_conf_read_file(), but for text from another source. Messages show `name` as the file, and @INCLUDE
 * is relative to the folder of `name`. `name` and `text` are copied. */
mk_err mk_conf_read_text(struct mk_conf_tree *tree, struct mk_arena *arena, const struct mk_conf_io *io,
                         mk_str name, mk_str text, struct mk_conf_report *report) MK_MUST_USE;

#endif
