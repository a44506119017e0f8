/* SPDX-License-Identifier: Apache-2.0 */
/* Converts libpq results to those of duda/sql.h. */
#ifndef DUDA_POSTGRES_RESULT_H
#define DUDA_POSTGRES_RESULT_H

#include <duda/sql.h>
#include <libpq-fe.h>

/* The error of a result, and its message, valid as long as the result; 0: success. */
int postgres_result_errno(const PGresult *result, const char **error);
/* Copies a successful result into the memory of the handler. 0, -ENOMEM, or -EMSGSIZE if it is longer than
 * max. */
int postgres_result_copy(PGresult *from, size_t max, struct duda_ctx *d, struct duda_sql_result *to);
/* The error of a COPY, with line and column in `error`. A malformed row is -EBADMSG. */
int postgres_copy_result_errno(const PGresult *result, char *error, size_t size);

#endif
