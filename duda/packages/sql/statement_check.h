/* SPDX-License-Identifier: Apache-2.0 */
/* Checks statements before they reach a backend. */
#ifndef DUDA_SQL_STATEMENT_CHECK_H
#define DUDA_SQL_STATEMENT_CHECK_H

#include <duda/sql.h>

/* Returns 0; -EMSGSIZE or -EBADMSG, with result->error: the statement is too long, has too many parameters,
 * or a string contains NUL. */
int sql_statement_check(struct duda_sql_result *result, mk_str statement,
                        const struct duda_sql_value *parameters, size_t n);

#endif
