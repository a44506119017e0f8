/* SPDX-License-Identifier: Apache-2.0 */
/* Binds a tree to structs: checks every entry of a section against the section's table, and fills the fields
 * of the struct. */
#ifndef MK_CONF_BIND_H
#define MK_CONF_BIND_H

#include "conf/check.h"
#include "conf/table.h"

/* Fills the struct at `out`: first with the defaults of the keys, then with the entries of the section. A
 * field whose key has neither a default nor an entry stays unchanged. If `section` is NULL, only sets the
 * defaults, and reports required keys as missing. Returns 0, -EINVAL if this call found errors, or -ENOMEM;
 * `out` is always safe to read. Strings in the struct point into the arena of the tree or into `arena`; both
 * must live as long as the struct is used. */
mk_err mk_conf_bind(const struct mk_conf_table *table, const struct mk_conf_section *section, void *out,
                    struct mk_arena *arena, struct mk_conf_report *report) MK_MUST_USE;

/* Like mk_conf_bind(), but without defaults and without checking required keys: the fields of keys that the
 * section does not set stay unchanged. `out` may therefore be a copy of the settings that the section
 * inherits. */
mk_err mk_conf_bind_without_defaults(const struct mk_conf_table *table, const struct mk_conf_section *section,
                                     void *out, struct mk_arena *arena,
                                     struct mk_conf_report *report) MK_MUST_USE;

#endif
