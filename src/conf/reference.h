/* SPDX-License-Identifier: Apache-2.0 */
/* Generates the Markdown reference of a section from its table. */
#ifndef MK_CONF_REFERENCE_H
#define MK_CONF_REFERENCE_H

#include "conf/table.h"

/* Writes a second-level heading, the help text, and a table of keys with their values, defaults and
 * meaning. */
void mk_conf_reference_print(const struct mk_conf_table *table, struct mk_buf *out);

#endif
