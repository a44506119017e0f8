/* SPDX-License-Identifier: Apache-2.0 */
/* Results of libpq as rows. */
#ifndef DUDA_POSTGRES_VALUES_H
#define DUDA_POSTGRES_VALUES_H

#include <duda/sql_backend.h>
#include <libpq-fe.h>

/* All rows of a result, or what it says went wrong. */
void postgres_values_take(struct duda_sql_rows *rows, mk_str name, PGresult *result);
/* What went wrong with a COPY, and in which line and column: words into `why`. A row that is none is
 * -EBADMSG.
 */
int postgres_values_copy_error(const PGresult *result, char *why, size_t size);

#endif
