/* SPDX-License-Identifier: Apache-2.0 */
#include "struct_parameters.h"

#include <duda/json.h>
#include <duda/log.h>
#include <duda/memory.h>
#include <errno.h>

#include "array_text.h"

enum { TEXT_MAX = 16 << 20 };

/* ---- Members ---- */

static const struct duda_schema_field *find_member(const struct duda_schema *schema, mk_str name)
{
    for (size_t i = 0; i < schema->n && schema->field_size; i++) {
        const struct duda_schema_field *m = duda_schema_field_at(schema, i);
        if (mk_str_eq(mk_str_from_c(m->name), name) || mk_str_eq(mk_str_from_c(m->json_name), name))
            return m;
    }
    return NULL;
}

/* Returns the member as a value. A single member is a list of one element here. */
static struct duda_value member_value(const struct duda_schema_field *m, const char *base)
{
    struct duda_value list = duda_value_structs(m->schema, base + m->offset, 1);
    list.of.in.field = m;
    if (!m->is_list)
        return duda_value_item(&list, 0);
    memcpy(&list.of.in.object, base + m->offset, sizeof list.of.in.object);
    memcpy(&list.n, base + m->count_offset, sizeof list.n);
    return list;
}

/* ---- Conversions ---- */

static int keep_text(struct duda_ctx *d, struct mk_buf *text, struct duda_sql_value *out)
{
    mk_str copy = text->failed ? MK_STR_NULL : duda_strdup(d, text->len ? mk_buf_str(text) : MK_STR(""));
    mk_buf_free(text);
    *out = duda_sql_text(copy);
    return copy.p ? 0 : -ENOMEM;
}

static int convert_to_json(struct duda_ctx *d, const struct duda_value *v, struct duda_sql_value *out)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    duda_json_write(&text, v);
    return keep_text(d, &text, out);
}

static int convert_to_array(struct duda_ctx *d, const struct duda_value *list, struct duda_sql_value *out)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX), element = mk_buf_growing(TEXT_MAX);
    mk_buf_add_char(&text, '{');
    for (size_t i = 0; i < list->n; i++) {
        struct duda_value v = duda_value_item(list, i);
        mk_buf_clear(&element);
        duda_value_write(&element, &v);
        bool is_null = v.kind == DUDA_VALUE_NULL;
        sql_array_write_element(&text,
                                is_null       ? MK_STR_NULL
                                : element.len ? mk_buf_str(&element)
                                              : MK_STR(""),
                                i == 0);
    }
    mk_buf_add_char(&text, '}');
    text.failed = text.failed || element.failed;
    mk_buf_free(&element);
    return keep_text(d, &text, out);
}

/* Writes the time so that PostgreSQL and the functions of SQLite accept it, and so that it sorts like the
 * output of CURRENT_TIMESTAMP in SQLite. duda_value_timestamp() has checked its range. */
static int convert_timestamp(struct duda_ctx *d, const struct duda_value *v, struct duda_sql_value *out)
{
    char buf[64];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    duda_timestamp_write(&text, v->of.integer);
    buf[10] = ' ';
    text.len--; /* the Z */
    *out = duda_sql_text(duda_sprintf(d, "%.*s+00:00", MK_STR_ARG(mk_buf_str(&text))));
    return out->text.p ? 0 : -ENOMEM;
}

static int convert_unsigned(struct duda_ctx *d, uint64_t n, struct duda_sql_value *out)
{
    if (n <= INT64_MAX) {
        *out = duda_sql_integer((int64_t)n);
        return 0;
    }
    *out = duda_sql_text(duda_sprintf(d, "%llu", (unsigned long long)n));
    return out->text.p ? 0 : -ENOMEM;
}

static bool is_array(const struct duda_schema_field *m)
{
    return m->is_list && !m->is_map && m->kind != DUDA_KIND_OBJECT && m->kind != DUDA_KIND_JSON_RAW &&
           m->kind != DUDA_KIND_BYTES;
}

static int convert_value(struct duda_ctx *d, const struct duda_value *v, struct duda_sql_value *out)
{
    switch (v->kind) {
    case DUDA_VALUE_NULL:
        *out = duda_sql_null();
        return 0;
    case DUDA_VALUE_BOOL:
        *out = duda_sql_integer(v->of.boolean);
        return 0;
    case DUDA_VALUE_INTEGER:
        *out = duda_sql_integer(v->of.integer);
        return 0;
    case DUDA_VALUE_UNSIGNED:
        return convert_unsigned(d, v->of.uinteger, out);
    case DUDA_VALUE_NUMBER:
        *out = duda_sql_real(v->of.number);
        return 0;
    case DUDA_VALUE_TEXT:
    case DUDA_VALUE_RAW:
        *out = duda_sql_text(v->of.text);
        return 0;
    case DUDA_VALUE_BYTES:
        *out = duda_sql_blob(v->of.text);
        return 0;
    case DUDA_VALUE_TIMESTAMP:
        return convert_timestamp(d, v, out);
    case DUDA_VALUE_STRUCT:
    case DUDA_VALUE_STRUCTS:
    case DUDA_VALUE_LIST:
    case DUDA_VALUE_MAP:
        break;
    }
    return convert_to_json(d, v, out);
}

static bool is_number(const struct duda_schema_field *m)
{
    return m->kind == DUDA_KIND_INTEGER || m->kind == DUDA_KIND_DOUBLE || m->kind == DUDA_KIND_TIMESTAMP;
}

/* Under `monkey run`, warns about an optional number that is zero, perhaps because the client has not sent it:
 * without a presence flag, it does not become NULL. */
static void warn_about_zero(struct duda_ctx *d, const struct duda_schema_field *m, const char *base)
{
    static const char zero[sizeof(uint64_t)];
    if (m->optional && !m->presence_offset && !m->is_list && is_number(m) && m->size <= sizeof zero &&
        memcmp(base + m->offset, zero, m->size) == 0)
        duda_log_mistake(
            d, m,
            "the optional member `%s` is stored as %s, not as NULL, if it has no value: give it a "
            "presence flag with DUDA_OPTIONAL(), unless this is its default",
            m->name, m->kind == DUDA_KIND_TIMESTAMP ? "the year 1970" : "0");
}

int sql_struct_parameter(struct duda_ctx *d, const struct duda_schema *schema, const void *object,
                         mk_str name, bool has_arrays, struct duda_sql_value *out)
{
    const char *base = (const char *)object;
    const struct duda_schema_field *m = find_member(schema, name);
    for (size_t dot; !m && (dot = mk_str_find(name, '.')) != MK_STR_NONE; m = find_member(schema, name)) {
        m = find_member(schema, mk_str_first(name, dot));
        if (!m || m->kind != DUDA_KIND_OBJECT || m->is_list)
            return -ENOENT;
        *out = duda_sql_null();
        if (!duda_schema_field_is_present(m, base))
            return 0;
        base += m->offset;
        schema = m->schema;
        name = mk_str_skip(name, dot + 1);
    }
    if (!m)
        return -ENOENT;
    *out = duda_sql_null();
    if (!duda_schema_field_is_present(m, base))
        return 0;
    warn_about_zero(d, m, base);
    struct duda_value v = member_value(m, base);
    return has_arrays && is_array(m) ? convert_to_array(d, &v, out) : convert_value(d, &v, out);
}
