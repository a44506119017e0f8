/* SPDX-License-Identifier: Apache-2.0 */
/* Results of libpq as those of duda/sql.h. */
#ifndef DUDA_POSTGRES_RESULT_H
#define DUDA_POSTGRES_RESULT_H

#include <duda/sql.h>
#include <libpq-fe.h>

/* What went wrong, and in words as long as the result is there; 0: nothing. */
int postgres_result_errno(const PGresult *result, const char **why);
/* Copies a good result into the memory of the handler. 0, -EMSGSIZE: it is longer than max, or -ENOMEM. */
int postgres_result_copy(PGresult *from, size_t max, struct duda_ctx *d, struct duda_sql_result *to);
/* What went wrong with a COPY, and in which line and column: words into `why`. A row that is none is
 * -EBADMSG.
 */
int postgres_copy_result_errno(const PGresult *result, char *why, size_t size);

#endif
