/* SPDX-License-Identifier: Apache-2.0 */
#include "statement_check.h"

#include <errno.h>

static int reject_statement(struct duda_sql_result *result, int e, const char *error)
{
    result->error = mk_str_from_c(error);
    return e;
}

int sql_statement_check(struct duda_sql_result *result, mk_str statement,
                        const struct duda_sql_value *parameters, size_t n)
{
    if (statement.len > DUDA_SQL_TEXT_MAX)
        return reject_statement(result, -EMSGSIZE, "the statement is too long");
    if (n > DUDA_SQL_PARAMETERS_MAX)
        return reject_statement(result, -EMSGSIZE, "the statement has too many parameters");
    for (size_t i = 0; i < n; i++) /* PostgreSQL rejects NULs, and libpq would truncate there */
        if (parameters[i].type == DUDA_SQL_TEXT && memchr(parameters[i].text.p, 0, parameters[i].text.len))
            return reject_statement(result, -EBADMSG, "a string contains NUL");
    return 0;
}
