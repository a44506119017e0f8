/* SPDX-License-Identifier: Apache-2.0 */
/* The text format of PostgreSQL's arrays: {1,2,NULL} or {"a b",c}. */
#ifndef DUDA_SQL_ARRAY_TEXT_H
#define DUDA_SQL_ARRAY_TEXT_H

#include <monkey/buf.h>

enum sql_array_elements {
    SQL_ARRAY_OF_NUMBERS,
    SQL_ARRAY_OF_BOOLS,
    SQL_ARRAY_OF_STRINGS,
};

/* Converts an array of one dimension to a JSON array. Returns false if the text is not such an array. The
 * elements of SQL_ARRAY_OF_NUMBERS are copied unchecked. */
bool sql_array_to_json(struct mk_buf *out, mk_str text, enum sql_array_elements elements);
/* Writes an element of an array, with the comma before it unless it is the first one. An absent text is
 * NULL. */
void sql_array_write_element(struct mk_buf *out, mk_str text, bool is_first);

#endif
