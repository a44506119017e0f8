/* SPDX-License-Identifier: Apache-2.0 */
/* The reference of a section, in Markdown, from its table. */
#ifndef MK_CONF_REFERENCE_H
#define MK_CONF_REFERENCE_H

#include "conf/table.h"

/* Writes a heading of the second level, the help, and a table of keys: what each takes, its default and its
 * meaning. */
void mk_conf_reference_print(const struct mk_conf_table *table, struct mk_buf *out);

#endif
