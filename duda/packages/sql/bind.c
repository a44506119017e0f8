/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as structs, and named parameters from structs. */
#include <duda/body.h>
#include <duda/memory.h>
#include <duda/request.h>
#include <duda/sql_backend.h>
#include <errno.h>

#include "named_parameters.h"
#include "row_binding.h"
#include "struct_parameters.h"

/* ---- Rows ---- */

/* Stores n rows in consecutive structs. */
static int bind_rows(struct duda_ctx *d, struct duda_sql_result *result, size_t first, size_t n,
                     const struct duda_schema *schema, void *structs)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct sql_row_binding b;
    int e = sql_row_binding_prepare(&b, result, schema, &memory);
    e = e ? e : sql_row_binding_store(&b, result, first, n, schema->size, structs);
    if (!e)
        return 0;
    result->error = duda_strdup(d, mk_str_from_c(e == -ENOMEM ? "out of memory" : b.message));
    return e == -ENOMEM ? e : duda_reason(d, e, "%s", b.message);
}

/* Checks that the structs of the handler have the size that the schema describes. */
static int check_struct_size(struct duda_ctx *d, struct duda_sql_result *result,
                             const struct duda_schema *schema, size_t size)
{
    int e = duda_schema_check_size(d, schema, size);
    if (e)
        result->error = MK_STR("the size of the struct is not that of the schema");
    return e;
}

int duda_sql_bind_rows_checked(struct duda_ctx *d, struct duda_sql_result *result,
                               const struct duda_schema *schema, void *list, size_t size)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    void *structs = NULL;
    int e = check_struct_size(d, result, schema, size);
    if (!e) {
        structs = mk_allocator_zalloc(&memory, result->n_rows, schema->size);
        e = structs ? bind_rows(d, result, 0, result->n_rows, schema, structs) : -ENOMEM;
    }
    if (e)
        structs = NULL;
    memcpy(list, &structs, sizeof structs);
    return e;
}

int duda_sql_bind_row_checked(struct duda_ctx *d, struct duda_sql_result *result, size_t row,
                              const struct duda_schema *schema, void *out, size_t size)
{
    int e = check_struct_size(d, result, schema, size);
    if (e)
        return e;
    return row < result->n_rows ? bind_rows(d, result, row, 1, schema, out) : -ENOENT;
}

int duda_sql_query_rows_values(struct duda_ctx *d, struct duda_sql_db *db, const struct duda_schema *schema,
                               void *list, size_t size, size_t *n, const char *text,
                               const struct duda_sql_value *parameters, size_t n_parameters)
{
    struct duda_sql_result result;
    void *none = NULL;
    *n = 0;
    memcpy(list, &none, sizeof none);
    int e = duda_sql_query_values(d, db, &result, text, parameters, n_parameters);
    e = e ? e : duda_sql_bind_rows_checked(d, &result, schema, list, size);
    *n = e ? 0 : result.n_rows;
    return e;
}

int duda_sql_query_row_values(struct duda_ctx *d, struct duda_sql_db *db, const struct duda_schema *schema,
                              void *out, size_t size, const char *text,
                              const struct duda_sql_value *parameters, size_t n)
{
    struct duda_sql_result result;
    int e = duda_sql_query_values(d, db, &result, text, parameters, n);
    return e ? e : duda_sql_bind_row_checked(d, &result, 0, schema, out, size);
}

int duda_sql_query_cell_values(struct duda_ctx *d, struct duda_sql_db *db, struct duda_sql_value *cell,
                               const char *text, const struct duda_sql_value *parameters, size_t n)
{
    struct duda_sql_result result;
    *cell = duda_sql_null();
    int e = duda_sql_query_values(d, db, &result, text, parameters, n);
    if (e)
        return e;
    if (!result.n_rows || !result.n_columns)
        return -ENOENT;
    *cell = *duda_sql_cell(&result, 0, 0);
    return 0;
}

/* ---- Named parameters ---- */

/* The source of the values: an array, or a struct. */
struct sql_arguments {
    const struct duda_sql_named_value *all;
    size_t n;
    const struct duda_schema *schema; /* NULL: the array */
    const void *object;
};

static int find_argument(struct duda_ctx *d, const struct duda_sql_db *db,
                         const struct sql_arguments *arguments, mk_str name, struct duda_sql_value *out)
{
    if (arguments->schema)
        return sql_struct_parameter(d, arguments->schema, arguments->object, name, db->ops->has_arrays, out);
    for (size_t i = 0; i < arguments->n; i++)
        if (mk_str_eq(mk_str_from_c(arguments->all[i].name), name)) {
            *out = arguments->all[i].value;
            return 0;
        }
    return -ENOENT;
}

static int set_error(struct duda_ctx *d, struct duda_sql_result *result, int e, mk_str error)
{
    *result = (struct duda_sql_result){.error = error};
    return e == -ENOMEM ? e : duda_reason(d, e, "%.*s", MK_STR_ARG(error));
}

static int find_arguments(struct duda_ctx *d, const struct duda_sql_db *db, struct duda_sql_result *result,
                          const struct sql_names *names, const struct sql_arguments *arguments,
                          struct duda_sql_value *values)
{
    for (size_t i = 0; i < names->n; i++) {
        int e = find_argument(d, db, arguments, names->at[i], &values[i]);
        if (e == -ENOENT)
            return set_error(d, result, -EINVAL,
                             duda_sprintf(d, "there is no value for the parameter `:%.*s`",
                                          MK_STR_ARG(mk_str_first(names->at[i], 80))));
        if (e)
            return set_error(d, result, e, MK_STR("out of memory"));
    }
    return 0;
}

/* Sets *out to the statement with numbered parameters. It is in the memory of the handler, because a handler
 * that is cancelled while it waits for the database could not free it. */
static int number_parameters(struct duda_ctx *d, struct duda_sql_result *result, const char *text,
                             struct sql_names *names, mk_str *out)
{
    struct mk_buf numbered = mk_buf_growing(DUDA_SQL_TEXT_MAX + 1);
    int e = sql_named_parameters_replace(&numbered, mk_str_from_c(text), names);
    bool is_too_long = numbered.failed;
    *out = e || is_too_long ? MK_STR_NULL : duda_strdup(d, mk_buf_str(&numbered));
    mk_buf_free(&numbered);
    if (e == -E2BIG)
        return set_error(d, result, -EMSGSIZE, MK_STR("the statement has more than 128 named parameters"));
    if (e)
        return set_error(d, result, e, MK_STR("the statement has both named and numbered parameters"));
    if (is_too_long)
        return set_error(d, result, -EMSGSIZE, MK_STR("the statement is too long"));
    return out->p ? 0 : set_error(d, result, -ENOMEM, MK_STR("out of memory"));
}

static int query_named(struct duda_ctx *d, struct duda_sql_db *db, struct duda_sql_result *result,
                       const char *text, const struct sql_arguments *arguments)
{
    enum { NAMES_MAX = 128 };
    mk_str numbered;
    struct duda_sql_result own;
    struct sql_names names = {.at = duda_alloc(d, NAMES_MAX * sizeof(mk_str)), .max = NAMES_MAX};
    result = result ? result : &own;
    if (!db)
        return duda_sql_query_values(d, db, result, text, NULL, 0);
    if (!names.at)
        return set_error(d, result, -ENOMEM, MK_STR("out of memory"));
    int e = number_parameters(d, result, text, &names, &numbered);
    if (e)
        return e;
    struct duda_sql_value *values = duda_alloc(d, (names.n + 1) * sizeof *values);
    if (!values)
        return set_error(d, result, -ENOMEM, MK_STR("out of memory"));
    e = find_arguments(d, db, result, &names, arguments, values);
    return e ? e : duda_sql_query_values(d, db, result, numbered.p, values, names.n);
}

int duda_sql_query_named(struct duda_ctx *d, struct duda_sql_db *db, struct duda_sql_result *result,
                         const char *text, const struct duda_sql_named_value *values, size_t n)
{
    return query_named(d, db, result, text, &(struct sql_arguments){.all = values, .n = n});
}

int duda_sql_query_struct(struct duda_ctx *d, struct duda_sql_db *db, struct duda_sql_result *result,
                          const char *text, const struct duda_schema *schema, const void *object)
{
    return query_named(d, db, result, text, &(struct sql_arguments){.schema = schema, .object = object});
}
