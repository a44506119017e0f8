/* SPDX-License-Identifier: Apache-2.0 */
/* Formats values as JSON. Lists of structs, the most common responses, are formatted without a value per
 * field. */
#include <duda/json.h>
#include <monkey/text.h>

#include "text/schema_field.h"

static void write_value(struct mk_buf *out, const struct duda_value *v, size_t depth);

/* ---- Structs ---- */

static void write_name(struct mk_buf *out, const char *name)
{
    mk_buf_put(out, MK_STR(","));
    mk_json_string(out, mk_str_from_c(name));
    mk_buf_put(out, MK_STR(":"));
}

/* Formatted field names, each with a preceding comma: prepared once for all elements of a list. */
struct cached_names {
    char buf[240];
    unsigned char ends[16];
};

/* False: too many names, or too long. */
static bool cache_field_names(struct cached_names *cached_names, const struct duda_schema *shape)
{
    struct mk_buf buf = mk_buf_fixed(cached_names->buf, sizeof cached_names->buf);
    for (size_t i = 0; i < shape->n; i++) {
        if (i == MK_LEN(cached_names->ends))
            return false;
        write_name(&buf, duda_schema_field_name(&shape->members[i]));
        cached_names->ends[i] = (unsigned char)buf.len;
    }
    return !buf.failed;
}

static void append_cached_name(struct mk_buf *out, const struct cached_names *cached_names, size_t i)
{
    size_t from = i ? cached_names->ends[i - 1] : 0;
    mk_buf_put(out, mk_str_of(cached_names->buf + from, cached_names->ends[i] - from));
}

/* Omits absent optional fields. */
static void write_field(struct mk_buf *out, const struct duda_schema *shape, size_t i,
                        const struct cached_names *cached_names, const void *base, size_t depth)
{
    const struct duda_schema_field *m = &shape->members[i];
    struct duda_value v;
    bool is_integer = m->kind == DUDA_KIND_INTEGER && !m->is_list && duda_schema_field_is_present(m, base);
    if (!is_integer) {
        v = duda_schema_field_value(m, base);
        if (m->optional && v.kind == DUDA_VALUE_NULL)
            return;
    }
    if (cached_names)
        append_cached_name(out, cached_names, i);
    else
        write_name(out, duda_schema_field_name(m));
    if (is_integer)
        duda_schema_field_write_integer(out, m, base);
    else
        write_value(out, &v, depth);
}

/* Turns the comma before the first field into the bracket. */
static void close_object(struct mk_buf *out, size_t from)
{
    if (out->len == from)
        mk_buf_put(out, MK_STR("{"));
    else
        out->p[from] = '{';
    mk_buf_put(out, MK_STR("}"));
}

/* `cached_names` may be NULL. */
static void write_struct(struct mk_buf *out, const struct duda_schema *shape,
                         const struct cached_names *cached_names, const void *base, size_t depth)
{
    size_t from = out->len;
    for (size_t i = 0; i < shape->n && !out->failed; i++)
        write_field(out, shape, i, cached_names, base, depth);
    close_object(out, from);
}

/* ---- Lists and maps ---- */

static void write_list(struct mk_buf *out, const struct duda_value *v, size_t depth)
{
    struct cached_names cached_names;
    const struct duda_schema *shape =
        v->kind == DUDA_VALUE_STRUCTS && v->n > 1 && depth ? v->of.in.shape : NULL;
    bool has_names = shape && cache_field_names(&cached_names, shape);
    mk_buf_put(out, MK_STR("["));
    for (size_t i = 0; i < v->n && !out->failed; i++) {
        struct duda_value element = duda_value_item(v, i);
        if (i)
            mk_buf_put(out, MK_STR(","));
        if (has_names && element.kind == DUDA_VALUE_STRUCT)
            write_struct(out, shape, &cached_names, element.of.in.at, depth - 1);
        else
            write_value(out, &element, depth);
    }
    mk_buf_put(out, MK_STR("]"));
}

/* A null in a map is written. */
static void write_map(struct mk_buf *out, const struct duda_value *v, size_t depth)
{
    size_t from = out->len;
    for (size_t i = 0; i < v->n && !out->failed; i++) {
        write_name(out, v->of.map[i].name);
        write_value(out, &v->of.map[i].value, depth);
    }
    close_object(out, from);
}

static void write_nested_value(struct mk_buf *out, const struct duda_value *v, size_t depth)
{
    if (depth == 0)
        mk_buf_put(out, MK_STR("null"));
    else if (v->kind == DUDA_VALUE_STRUCT)
        write_struct(out, v->of.in.shape, NULL, v->of.in.at, depth - 1);
    else if (v->kind == DUDA_VALUE_MAP)
        write_map(out, v, depth - 1);
    else
        write_list(out, v, depth - 1);
}

static void write_value(struct mk_buf *out, const struct duda_value *v, size_t depth)
{
    switch (v->kind) {
    case DUDA_VALUE_NULL:
        mk_buf_put(out, MK_STR("null"));
        break;
    case DUDA_VALUE_TEXT:
        mk_json_string(out, v->of.text);
        break;
    case DUDA_VALUE_STRUCT:
    case DUDA_VALUE_STRUCTS:
    case DUDA_VALUE_LIST:
    case DUDA_VALUE_MAP:
        write_nested_value(out, v, depth);
        break;
    case DUDA_VALUE_BOOL:
    case DUDA_VALUE_INTEGER:
    case DUDA_VALUE_UNSIGNED:
    case DUDA_VALUE_NUMBER:
    case DUDA_VALUE_RAW:
        duda_value_write(out, v);
        break;
    }
}

void duda_json_write(struct mk_buf *out, const struct duda_value *v)
{
    write_value(out, v, DUDA_JSON_DEPTH_MAX);
}
