/* SPDX-License-Identifier: Apache-2.0 */
/* Converts libpq results to those of duda/sql.h. */
#ifndef DUDA_POSTGRES_RESULT_H
#define DUDA_POSTGRES_RESULT_H

#include <duda/sql.h>
#include <libpq-fe.h>

/* Returns the error of a result, or 0 for success. The message in *error is valid as long as the result. */
int postgres_result_errno(const PGresult *result, const char **error);
/* Describes the constraint that a statement has violated. The texts are valid as long as the result. Returns
 * false if the result is no such error. */
bool postgres_result_violation(const PGresult *result, struct duda_sql_violation *violation);
/* Copies a successful result into the memory of the handler. Returns 0, -ENOMEM, or -EMSGSIZE if the result
 * is longer than `max`. */
int postgres_result_copy(PGresult *from, size_t max, struct duda_ctx *d, struct duda_sql_result *to);
/* Returns the error of a COPY, -EBADMSG for a malformed row. Stores the message in `error`, with line and
 * column. */
int postgres_copy_result_errno(const PGresult *result, char *error, size_t size);

#endif
