/* SPDX-License-Identifier: Apache-2.0 */
/* Structs back to text: the effective configuration, in the format that the reader reads. */
#ifndef MK_CONF_PRINT_H
#define MK_CONF_PRINT_H

#include "conf/table.h"

/* Writes the section with every key that has a value, defaults included, so that reading and binding it again
 * gives the same struct. Aliases and ignored keys are left out; a text or a list that is not set appears as a
 * comment. */
void mk_conf_print_section(const struct mk_conf_table *table, const void *in, struct mk_buf *out);

/* One entry with its indent and line end; references in the value are escaped. `value` is the text that is to
 * come out of the reader (see mk_conf_words_write_text for quotes). */
void mk_conf_print_entry(mk_str key, mk_str value, struct mk_buf *out);

#endif
