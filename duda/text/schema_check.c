/* SPDX-License-Identifier: Apache-2.0 */
#include "text/schema_check.h"

#include "text/pattern.h"

enum { DEPTH_MAX = 8 };

static bool is_number(const struct duda_schema_field *m)
{
    return m->kind == DUDA_KIND_INTEGER || m->kind == DUDA_KIND_DOUBLE;
}

static bool has_length(const struct duda_schema_field *m)
{
    return m->is_list || m->kind == DUDA_KIND_STRING || m->kind == DUDA_KIND_BYTES;
}

static bool has_unique_elements(const struct duda_schema_field *m)
{
    return m->is_list && m->kind != DUDA_KIND_OBJECT && m->kind != DUDA_KIND_JSON_RAW;
}

/* Returns why the rules of the member are invalid; NULL if they are valid. */
static const char *check_rules(const struct duda_schema_field *m)
{
    if ((m->at_least.is_set || m->at_most.is_set) && !is_number(m))
        return "DUDA_MINIMUM() and DUDA_MAXIMUM() are for integers and doubles";
    if (m->at_least.is_set && m->at_most.is_set && m->at_least.value > m->at_most.value)
        return "its minimum is larger than its maximum";
    if ((m->min_length || m->max_length) && !has_length(m))
        return "`.min_length` and `.max_length` are for strings, bytes and lists";
    if (m->max_length && m->min_length > m->max_length)
        return "its `.min_length` is larger than its `.max_length`";
    if ((m->pattern || m->format) && m->kind != DUDA_KIND_STRING)
        return "`.pattern` and `.format` are for strings";
    if (m->format && !duda_format_name(m->format))
        return "its `.format` is unknown";
    if (m->is_unique && !has_unique_elements(m))
        return "`.is_unique` is for lists, except of structs and JSON values";
    return NULL;
}

static const char *check_type(const struct duda_schema_field *m)
{
    if (m->kind == DUDA_KIND_ENUM && !m->values)
        return "an enum needs `.values`";
    if (m->kind == DUDA_KIND_TIMESTAMP && m->size != sizeof(int64_t))
        return "a timestamp is an int64_t";
    if (m->kind == DUDA_KIND_OBJECT && !m->schema)
        return "an object needs `.schema`";
    if (m->is_map &&
        (!m->schema || m->schema->n != 2 || duda_schema_field_at(m->schema, 0)->kind != DUDA_KIND_STRING ||
         duda_schema_field_at(m->schema, 0)->is_list))
        return "the schema of a map has two members: a string and the value";
    return NULL;
}

static bool report_error(struct mk_buf *message, const struct duda_schema *schema,
                         const struct duda_schema_field *m, const char *error)
{
    mk_buf_addf(message, "the member `%s` of the schema of %s: %s", m->name,
                schema->name ? schema->name : "a struct", error);
    return false;
}

static bool check_pattern(struct mk_buf *message, const struct duda_schema *schema,
                          const struct duda_schema_field *m)
{
    struct mk_regex_error error;
    if (!m->pattern || duda_pattern_check(m->pattern, &error) == 0)
        return true;
    mk_buf_addf(message, "the member `%s` of the schema of %s: `.pattern`, offset %zu: %s", m->name,
                schema->name ? schema->name : "a struct", error.offset, error.text);
    return false;
}

/* A schema may contain itself, so the depth is limited. */
static bool check_schema(const struct duda_schema *schema, struct mk_buf *message, unsigned depth)
{
    if (!schema || !schema->n || depth == DEPTH_MAX)
        return true;
    if (schema->field_size < offsetof(struct duda_schema_field, schema) ||
        schema->field_size > sizeof(struct duda_schema_field)) {
        mk_buf_add(message,
                   MK_STR("a schema has no valid `.field_size`: define each schema with DUDA_SCHEMA()"));
        return false;
    }
    for (size_t i = 0; i < schema->n; i++) {
        const struct duda_schema_field *m = duda_schema_field_at(schema, i);
        if (m->kind == DUDA_KIND_OBJECT && !check_schema(m->schema, message, depth + 1))
            return false;
        const char *error = check_type(m);
        error = error ? error : check_rules(m);
        if (error)
            return report_error(message, schema, m, error);
        if (!check_pattern(message, schema, m))
            return false;
    }
    return true;
}

bool duda_schema_check(const struct duda_schema *schema, struct mk_buf *message)
{
    return check_schema(schema, message, 0);
}
