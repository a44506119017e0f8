/* SPDX-License-Identifier: Apache-2.0 */
/* Converts members of structs to parameters of statements. */
#ifndef DUDA_SQL_STRUCT_PARAMETERS_H
#define DUDA_SQL_STRUCT_PARAMETERS_H

#include <duda/schema.h>
#include <duda/sql.h>

/* Sets *out to the value of the member, which may be nested: `home.street`. With `has_arrays`, lists become
 * array literals, otherwise JSON. Returns 0; -ENOENT: there is no such member; or -ENOMEM. */
int sql_struct_parameter(struct duda_ctx *d, const struct duda_schema *schema, const void *object,
                         mk_str name, bool has_arrays, struct duda_sql_value *out);

#endif
