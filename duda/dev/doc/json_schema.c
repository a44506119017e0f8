/* SPDX-License-Identifier: Apache-2.0 */
#include "doc/json_schema.h"

#include <monkey/text.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEPTH_MAX = 8, NAME_MAX_ = 64 };

const char *dev_json_schema_of_param_type(mk_str type)
{
    static const char *const schemas[][2] = {
        {"int", "{\"type\":\"integer\",\"format\":\"int64\"}"},
        {"uint", "{\"type\":\"integer\",\"minimum\":0}"},
        {"number", "{\"type\":\"number\"}"},
        {"uuid", "{\"type\":\"string\",\"format\":\"uuid\"}"},
        {"date", "{\"type\":\"string\",\"format\":\"date\"}"},
        {"hex", "{\"type\":\"string\",\"pattern\":\"^[0-9A-Fa-f]+$\"}"},
        {"alpha", "{\"type\":\"string\",\"pattern\":\"^[A-Za-z]+$\"}"},
        {"word", "{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9_]+$\"}"},
        {"slug", "{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9_-]+$\"}"},
        {"rest", "{\"type\":\"string\",\"description\":\"all that is left of the path, with its slashes\"}"},
    };
    for (size_t i = 0; i < MK_LEN(schemas); i++)
        if (mk_str_eq(type, mk_str_from_c(schemas[i][0])))
            return schemas[i][1];
    return "{\"type\":\"string\"}";
}

/* The shortest form that parses to the same number. */
static void append_number(struct mk_buf *out, const char *name, double n)
{
    char buf[40];
    snprintf(buf, sizeof buf, "%.15g", n);
    if (strtod(buf, NULL) != n) /* NOLINT: exact comparison intended */
        snprintf(buf, sizeof buf, "%.17g", n);
    mk_buf_addf(out, ",\"%s\":%s", name, buf);
}

static bool has_number_limits(const struct duda_schema_field *m)
{
    return m->low != 0 || m->high != 0;
}

static void append_number_range(struct mk_buf *out, const struct duda_schema_field *m)
{
    if (has_number_limits(m))
        append_number(out, "minimum", m->low);
    else if (m->kind == DUDA_KIND_INTEGER && !m->is_signed)
        mk_buf_add(out, MK_STR(",\"minimum\":0"));
    if (has_number_limits(m) && m->high >= m->low)
        append_number(out, "maximum", m->high);
}

static void append_integer(struct mk_buf *out, const struct duda_schema_field *m)
{
    mk_buf_add(out, MK_STR("{\"type\":\"integer\""));
    if (m->is_signed && m->size == 4)
        mk_buf_add(out, MK_STR(",\"format\":\"int32\""));
    else if (m->is_signed && m->size == 8)
        mk_buf_add(out, MK_STR(",\"format\":\"int64\""));
    append_number_range(out, m);
    mk_buf_add_char(out, '}');
}

static void append_length_range(struct mk_buf *out, const struct duda_schema_field *m, const char *what)
{
    if (m->min)
        mk_buf_addf(out, ",\"min%s\":%zu", what, m->min);
    if (m->max)
        mk_buf_addf(out, ",\"max%s\":%zu", what, m->max);
}

static void append_enum(struct mk_buf *out, const char *const *words)
{
    mk_buf_add(out, MK_STR("{\"type\":\"string\",\"enum\":["));
    for (size_t i = 0; words && words[i]; i++) {
        if (i)
            mk_buf_add_char(out, ',');
        mk_json_quote(out, mk_str_from_c(words[i]));
    }
    mk_buf_add(out, MK_STR("]}"));
}

struct schema_writer {
    struct mk_buf *out;
    struct dev_json_schemas *named; /* NULL: all schemas are written inline */
};

static void append_schema(const struct schema_writer *w, const struct duda_schema *shape, unsigned depth);

static void append_field_type(const struct schema_writer *w, const struct duda_schema_field *m,
                              unsigned depth)
{
    struct mk_buf *out = w->out;
    switch (m->kind) {
    case DUDA_KIND_BOOL:
        mk_buf_add(out, MK_STR("{\"type\":\"boolean\"}"));
        break;
    case DUDA_KIND_INTEGER:
        append_integer(out, m);
        break;
    case DUDA_KIND_DOUBLE:
        mk_buf_add(out, MK_STR("{\"type\":\"number\""));
        append_number_range(out, m);
        mk_buf_add_char(out, '}');
        break;
    case DUDA_KIND_STRING:
        mk_buf_add(out, MK_STR("{\"type\":\"string\""));
        if (!m->is_list)
            append_length_range(out, m, "Length");
        mk_buf_add_char(out, '}');
        break;
    case DUDA_KIND_ENUM:
        append_enum(out, m->words);
        break;
    case DUDA_KIND_OBJECT:
        append_schema(w, m->shape, depth + 1);
        break;
    case DUDA_KIND_JSON_RAW:
    default:
        mk_buf_add(out, MK_STR("{}"));
        break;
    }
}

static void append_field(const struct schema_writer *w, const struct duda_schema_field *m, unsigned depth)
{
    struct mk_buf *out = w->out;
    if (!m->is_list) {
        append_field_type(w, m, depth);
        return;
    }
    mk_buf_add(out, MK_STR("{\"type\":\"array\",\"items\":"));
    append_field_type(w, m, depth);
    append_length_range(out, m, "Items");
    mk_buf_add_char(out, '}');
}

static void append_required(struct mk_buf *out, const struct duda_schema *shape)
{
    size_t n = 0;
    for (size_t i = 0; i < shape->n; i++) {
        if (shape->members[i].optional)
            continue;
        mk_buf_add(out, n++ ? MK_STR(",") : MK_STR(",\"required\":["));
        mk_json_quote(out, mk_str_from_c(duda_schema_field_name(&shape->members[i])));
    }
    if (n)
        mk_buf_add_char(out, ']');
}

/* ---- Names ---- */

/* "struct line_item" becomes "line_item": only characters that OpenAPI allows. */
static size_t copy_type_name(char buf[NAME_MAX_], const char *type)
{
    size_t n = 0;
    mk_str rest = mk_str_from_c(type);
    if (mk_str_starts(rest, MK_STR("struct ")))
        rest = mk_str_skip(rest, 7);
    for (size_t i = 0; i < rest.len && n < NAME_MAX_ - 1; i++)
        if (mk_char_is_alpha(rest.p[i]) || mk_char_is_digit(rest.p[i]) || rest.p[i] == '_')
            buf[n++] = rest.p[i];
    buf[n] = '\0';
    return n;
}

/* Different schemas of one type are numbered. */
static void append_schema_name(struct mk_buf *out, const struct dev_json_schemas *named, size_t at)
{
    char own[NAME_MAX_], other[NAME_MAX_];
    size_t before = 0;
    (void)copy_type_name(own, named->at[at]->name);
    before += mk_str_eq(mk_str_from_c(own), MK_STR("Problem")); /* reserved for RFC 9457 */
    for (size_t i = 0; i < at; i++) {
        (void)copy_type_name(other, named->at[i]->name);
        before += mk_str_eq(mk_str_from_c(own), mk_str_from_c(other));
    }
    mk_buf_add(out, mk_str_from_c(own));
    if (before)
        mk_buf_addf(out, "_%zu", before + 1);
}

/* False: the schema has no name. */
static bool append_reference(const struct schema_writer *w, const struct duda_schema *shape)
{
    struct dev_json_schemas *named = w->named;
    char buf[NAME_MAX_];
    size_t i = 0;
    if (!named || !shape->name || copy_type_name(buf, shape->name) == 0)
        return false;
    while (i < named->n && named->at[i] != shape)
        i++;
    if (i == DEV_JSON_SCHEMAS_MAX)
        return false;
    if (i == named->n)
        named->at[named->n++] = shape;
    mk_buf_add(w->out, MK_STR("{\"$ref\":\"#/components/schemas/"));
    append_schema_name(w->out, named, i);
    mk_buf_add(w->out, MK_STR("\"}"));
    return true;
}

static void append_object(const struct schema_writer *w, const struct duda_schema *shape, unsigned depth)
{
    struct mk_buf *out = w->out;
    mk_buf_add(out, MK_STR("{\"type\":\"object\",\"properties\":{"));
    for (size_t i = 0; i < shape->n; i++) {
        if (i)
            mk_buf_add_char(out, ',');
        mk_json_quote(out, mk_str_from_c(duda_schema_field_name(&shape->members[i])));
        mk_buf_add_char(out, ':');
        append_field(w, &shape->members[i], depth);
    }
    mk_buf_add_char(out, '}');
    append_required(out, shape);
    if (!shape->ignores_unknown)
        mk_buf_add(out, MK_STR(",\"additionalProperties\":false"));
    mk_buf_add_char(out, '}');
}

static void append_schema(const struct schema_writer *w, const struct duda_schema *shape, unsigned depth)
{
    if (!shape || depth > DEPTH_MAX)
        mk_buf_add(w->out, MK_STR("{}"));
    else if (!append_reference(w, shape))
        append_object(w, shape, depth);
}

void dev_json_schema_write_field(struct mk_buf *out, const struct duda_schema_field *m)
{
    append_field(&(struct schema_writer){.out = out}, m, 0);
}

void dev_json_schema_write(struct mk_buf *out, struct dev_json_schemas *named,
                           const struct duda_schema *shape, bool is_list)
{
    if (is_list)
        mk_buf_add(out, MK_STR("{\"type\":\"array\",\"items\":"));
    append_schema(&(struct schema_writer){.out = out, .named = named}, shape, 0);
    if (is_list)
        mk_buf_add_char(out, '}');
}

void dev_json_schema_write_components(struct mk_buf *out, struct dev_json_schemas *named)
{
    for (size_t i = 0; i < named->n; i++) { /* fields may add further schemas */
        mk_buf_add(out, MK_STR(",\n\""));
        append_schema_name(out, named, i);
        mk_buf_add(out, MK_STR("\":"));
        append_object(&(struct schema_writer){.out = out, .named = named}, named->at[i], 0);
    }
}
