/* SPDX-License-Identifier: Apache-2.0 */
/* Text formats: rows of COPY, SQL literals, and bytea results. */
#ifndef DUDA_POSTGRES_TEXT_FORMAT_H
#define DUDA_POSTGRES_TEXT_FORMAT_H

#include <duda/sql.h>

/* Formats a row of values in the COPY format `text`, with its line ending. */
void postgres_copy_row_format(struct mk_buf *out, const struct duda_sql_value *values, size_t n);
/* Formats a string literal. Sets out->failed if the text contains a NUL, or if out of memory. */
void postgres_quote_literal(struct mk_buf *out, mk_str text);
/* Decodes a bytea value in hex or escape format, whichever the setting bytea_output selects. */
void postgres_bytea_decode(struct mk_buf *out, mk_str text);
/* Returns an upper limit for the size of the decoded bytes. */
size_t postgres_bytea_size_max(mk_str text);

#endif
