/* SPDX-License-Identifier: Apache-2.0 */
/* Binds a tree to structs: checks every entry of a section against its table and fills the fields. */
#ifndef MK_CONF_BIND_H
#define MK_CONF_BIND_H

#include "conf/check.h"
#include "conf/table.h"

/* Fills the struct at `out`: first every key that has a default, then the section's entries. A field whose
 * key has neither stays unchanged. `section` may be NULL: only the defaults (and an error for required keys).
 * Returns 0, -EINVAL if this call found errors, or -ENOMEM; `out` is always safe to read. Its text is in the
 * arena of the tree or in `arena`; both must live as long as `out` is used. */
mk_err mk_conf_bind(const struct mk_conf_table *table, const struct mk_conf_section *section, void *out,
                    struct mk_arena *arena, struct mk_conf_report *report) MK_MUST_USE;

/* Like mk_conf_bind(), but without defaults and without checking required keys: keys that the section does
 * not set stay unchanged in `out`, which may be a copy of the settings that the section inherits. */
mk_err mk_conf_bind_without_defaults(const struct mk_conf_table *table, const struct mk_conf_section *section,
                                     void *out, struct mk_arena *arena,
                                     struct mk_conf_report *report) MK_MUST_USE;

#endif
