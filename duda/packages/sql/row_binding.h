/* SPDX-License-Identifier: Apache-2.0 */
/* Stores rows in structs. The columns of a result are matched to the members of a schema once; each value
 * then takes a few instructions. */
#ifndef DUDA_SQL_ROW_BINDING_H
#define DUDA_SQL_ROW_BINDING_H

#include <duda/schema.h>
#include <duda/sql.h>

enum { SQL_BINDING_MESSAGE_MAX = 256, SQL_BINDING_FEW = 12 };

/* How the values of a column are stored. All conversions but SQL_COLUMN_OTHER depend only on the type of the
 * value and on the size of the member. */
enum sql_column_form {
    SQL_COLUMN_OTHER,
    SQL_COLUMN_INT64,  /* an INTEGER is copied */
    SQL_COLUMN_INT32,  /* an INTEGER is copied, if it fits */
    SQL_COLUMN_DOUBLE, /* a REAL is copied */
    SQL_COLUMN_BOOL,   /* an INTEGER is copied, if it is 0 or 1 */
    SQL_COLUMN_TEXT    /* a TEXT is copied */
};

/* A column, and the member that it is stored in. */
struct sql_column_binding {
    enum sql_column_form form;
    size_t offset; /* of the member in the outermost struct */
    size_t base;   /* of the struct with the member */
    const struct duda_schema_field *field;
    size_t field_size;
    size_t column;
};

/* Must not be moved after sql_row_binding_prepare(). */
struct sql_row_binding {
    struct sql_column_binding *columns; /* `few`, or allocated if there are more */
    struct sql_column_binding few[SQL_BINDING_FEW];
    size_t n;
    const mk_str *names; /* names of all columns of the result */
    const struct mk_allocator *memory;
    struct duda_validation_errors *errors;    /* for columns with JSON; allocated for the first of them */
    char message[SQL_BINDING_MESSAGE_MAX];    /* after an error */
    char json_error[SQL_BINDING_MESSAGE_MAX]; /* after an error in JSON */
};

/* Matches the columns. Returns 0; -EPROTO: the result lacks a column, or has one twice; or -ENOMEM. */
int sql_row_binding_prepare(struct sql_row_binding *b, const struct duda_sql_result *result,
                            const struct duda_schema *schema, const struct mk_allocator *memory);
/* Stores n rows in consecutive structs. Returns 0; -EPROTO, with the row in the message; or -ENOMEM. */
int sql_row_binding_store(struct sql_row_binding *b, const struct duda_sql_result *result, size_t first,
                          size_t n, size_t struct_size, void *out);

#endif
