/* SPDX-License-Identifier: Apache-2.0 */
/* Formats values as JSON. Lists of structs, the most common responses, are formatted without a value per
 * field. */
#include <duda/json.h>
#include <monkey/json.h>

#include "text/schema_field.h"

static void write_value(struct mk_json_writer *w, const struct duda_value *v, size_t depth);

/* ---- Structs ---- */

/* Formatted field names, each with a preceding comma: prepared once for all elements of a list. */
struct cached_names {
    char buf[240];
    unsigned char at[17]; /* offset of each name, and the end of the last one */
};

/* Returns false if the schema has too many names, or if the names do not fit into the buffer. */
static bool cache_field_names(struct cached_names *cached_names, const struct duda_schema *schema)
{
    struct mk_buf buf = mk_buf_fixed(cached_names->buf, sizeof cached_names->buf);
    struct mk_json_writer w = {.out = &buf};
    cached_names->at[0] = 0;
    for (size_t i = 0; i < schema->n; i++) {
        if (i == MK_LEN(cached_names->at) - 1)
            return false;
        w.comma = true;
        mk_json_key(&w, duda_schema_field_name(duda_schema_field_at(schema, i)));
        cached_names->at[i + 1] = (unsigned char)buf.len;
    }
    return !buf.failed;
}

static mk_str cached_name(const struct cached_names *cached_names, size_t i)
{
    size_t from = cached_names->at[i];
    return mk_str_of(cached_names->buf + from, cached_names->at[i + 1] - from);
}

/* Omits absent optional fields. Integers, the most common fields, are written without a struct duda_value. */
static void write_field(struct mk_json_writer *w, const struct duda_schema *schema, size_t i,
                        const struct cached_names *cached_names, const void *base, size_t depth)
{
    const struct duda_schema_field *m = duda_schema_field_at(schema, i);
    struct duda_value v;
    bool is_integer = m->kind == DUDA_KIND_INTEGER && !m->is_list && duda_schema_field_is_present(m, base);
    if (!is_integer) {
        v = duda_schema_field_value(m, base);
        if (m->optional && v.kind == DUDA_VALUE_NULL)
            return;
    }
    if (cached_names)
        mk_json_key_again(w, cached_name(cached_names, i));
    else
        mk_json_key(w, duda_schema_field_name(m));
    if (is_integer)
        duda_schema_field_write_integer(w, m, base);
    else
        write_value(w, &v, depth);
}

/* `cached_names` may be NULL. */
static void write_struct(struct mk_json_writer *w, const struct duda_schema *schema,
                         const struct cached_names *cached_names, const void *base, size_t depth)
{
    mk_json_begin_object(w);
    for (size_t i = 0; i < schema->n && !w->out->failed; i++)
        write_field(w, schema, i, cached_names, base, depth);
    mk_json_end_object(w);
}

/* ---- Lists and maps ---- */

/* Returns the schema of the elements, if there are several and they are structs. */
static const struct duda_schema *common_element_schema(const struct duda_value *v)
{
    bool are_structs =
        v->kind == DUDA_VALUE_STRUCTS && (!v->of.in.field || v->of.in.field->kind == DUDA_KIND_OBJECT);
    return are_structs && v->n > 1 ? v->of.in.schema : NULL;
}

static void write_structs(struct mk_json_writer *w, const struct duda_value *v,
                          const struct cached_names *cached_names, size_t depth)
{
    const struct duda_schema *schema = v->of.in.schema;
    size_t size = v->of.in.field ? v->of.in.field->size : schema->size;
    const char *at = v->of.in.object;
    for (size_t i = 0; i < v->n && !w->out->failed; i++)
        write_struct(w, schema, cached_names, at + i * size, depth);
}

static void write_list(struct mk_json_writer *w, const struct duda_value *v, size_t depth)
{
    struct cached_names cached_names;
    const struct duda_schema *schema = depth ? common_element_schema(v) : NULL;
    mk_json_begin_array(w);
    if (schema && cache_field_names(&cached_names, schema))
        write_structs(w, v, &cached_names, depth - 1);
    else
        for (size_t i = 0; i < v->n && !w->out->failed; i++) {
            struct duda_value element = duda_value_item(v, i);
            write_value(w, &element, depth);
        }
    mk_json_end_array(w);
}

/* A null value in a map is written, not omitted. */
static void write_map(struct mk_json_writer *w, const struct duda_value *v, size_t depth)
{
    mk_json_begin_object(w);
    for (size_t i = 0; i < v->n && !w->out->failed; i++)
        write_value(mk_json_key(w, v->of.map[i].name), &v->of.map[i].value, depth);
    mk_json_end_object(w);
}

static void write_nested_value(struct mk_json_writer *w, const struct duda_value *v, size_t depth)
{
    if (depth == 0)
        mk_json_null(w);
    else if (v->kind == DUDA_VALUE_STRUCT)
        write_struct(w, v->of.in.schema, NULL, v->of.in.object, depth - 1);
    else if (v->kind == DUDA_VALUE_MAP)
        write_map(w, v, depth - 1);
    else
        write_list(w, v, depth - 1);
}

static void write_value(struct mk_json_writer *w, const struct duda_value *v, size_t depth)
{
    switch (v->kind) {
    case DUDA_VALUE_NULL:
        mk_json_null(w);
        break;
    case DUDA_VALUE_BOOL:
        mk_json_bool(w, v->of.boolean);
        break;
    case DUDA_VALUE_INTEGER:
        mk_json_int(w, v->of.integer);
        break;
    case DUDA_VALUE_UNSIGNED:
        mk_json_uint(w, v->of.uinteger);
        break;
    case DUDA_VALUE_NUMBER:
        mk_json_double(w, v->of.number);
        break;
    case DUDA_VALUE_TEXT:
        mk_json_string(w, v->of.text);
        break;
    case DUDA_VALUE_RAW:
        mk_json_raw(w, v->of.text);
        break;
    case DUDA_VALUE_STRUCT:
    case DUDA_VALUE_STRUCTS:
    case DUDA_VALUE_LIST:
    case DUDA_VALUE_MAP:
        write_nested_value(w, v, depth);
        break;
    }
}

void duda_json_write(struct mk_buf *out, const struct duda_value *v)
{
    struct mk_json_writer w = mk_json_writer_to(out);
    write_value(&w, v, MK_JSON_DEPTH_MAX);
}
