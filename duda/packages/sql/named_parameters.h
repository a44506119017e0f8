/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces named parameters, `:title`, by numbered ones, `$1`. */
#ifndef DUDA_SQL_NAMED_PARAMETERS_H
#define DUDA_SQL_NAMED_PARAMETERS_H

#include <duda/sql.h>

/* The names of a statement, in the order of their numbers. They point into its text. */
struct sql_names {
    mk_str *at; /* space for `max` names */
    size_t n, max;
};

/* Writes the statement with numbered parameters. A name that occurs several times has one number. Names in
 * string literals, quoted identifiers and comments are left alone, and so is the operator `::`. Returns 0;
 * -E2BIG: more than `max` names; or -EINVAL: the statement has numbered parameters as well. */
int sql_named_parameters_replace(struct mk_buf *out, mk_str text, struct sql_names *names);

#endif
