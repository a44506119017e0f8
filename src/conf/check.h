/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of a whole configuration: are they all known, and as many as there may be? */
#ifndef MK_CONF_CHECK_H
#define MK_CONF_CHECK_H

#include "conf/table.h"

/* Reports every section that none of the n tables knows, and every one that stands twice and must not. */
mk_err mk_conf_check_sections(const struct mk_conf_tree *tree, const struct mk_conf_table *const *tables,
                              size_t n, struct mk_conf_report *report) MK_MUST_USE;

#endif
