/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the sections of a whole configuration: each section must be known, and must not be repeated unless
 * its table allows it. */
#ifndef MK_CONF_CHECK_H
#define MK_CONF_CHECK_H

#include "conf/table.h"

/* Reports every section that matches none of the n tables, and every repetition of a section that must be
 * unique in the configuration. Returns 0, -EINVAL if this call found errors, or -ENOMEM. */
mk_err mk_conf_check_sections(const struct mk_conf_tree *tree, const struct mk_conf_table *const *tables,
                              size_t n, struct mk_conf_report *report) MK_MUST_USE;

#endif
