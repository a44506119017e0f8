/* SPDX-License-Identifier: Apache-2.0 */
/* Values as text: rows of COPY, constants of SQL, and bytes of results. */
#ifndef DUDA_POSTGRES_TEXT_FORMAT_H
#define DUDA_POSTGRES_TEXT_FORMAT_H

#include <duda/sql.h>

/* Values of a row in the format `text`, with its line end. */
void postgres_copy_row_format(struct mk_buf *out, const struct duda_sql_value *values, size_t n);
/* A text as a constant. out->failed: there is a NUL inside, or no memory. */
void postgres_quote_literal(struct mk_buf *out, mk_str text);
/* The bytes of a bytea, in either of its forms: roles and databases may set bytea_output. */
void postgres_bytea_decode(struct mk_buf *out, mk_str text);
/* So many they are at most. */
size_t postgres_bytea_size_max(mk_str text);

#endif
