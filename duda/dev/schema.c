/* SPDX-License-Identifier: Apache-2.0 */
#include "schema.h"

#include <monkey/text.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEPTH_MAX = 8 };

const char *dev_schema_of_type(mk_str type)
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

/* The shortest form that reads as the same number. */
static void add_number(struct mk_buf *out, const char *name, double n)
{
    char room[40];
    snprintf(room, sizeof room, "%.15g", n);
    if (strtod(room, NULL) != n) /* NOLINT: exactly that one */
        snprintf(room, sizeof room, "%.17g", n);
    mk_buf_addf(out, ",\"%s\":%s", name, room);
}

static bool has_limits(const struct duda_member *m)
{
    return m->low != 0 || m->high != 0;
}

static void add_numbers(struct mk_buf *out, const struct duda_member *m)
{
    if (has_limits(m))
        add_number(out, "minimum", m->low);
    else if (m->kind == DUDA_KIND_INTEGER && !m->is_signed)
        mk_buf_add(out, MK_STR(",\"minimum\":0"));
    if (has_limits(m) && m->high >= m->low)
        add_number(out, "maximum", m->high);
}

static void add_integer(struct mk_buf *out, const struct duda_member *m)
{
    mk_buf_add(out, MK_STR("{\"type\":\"integer\""));
    if (m->is_signed && m->size == 4)
        mk_buf_add(out, MK_STR(",\"format\":\"int32\""));
    else if (m->is_signed && m->size == 8)
        mk_buf_add(out, MK_STR(",\"format\":\"int64\""));
    add_numbers(out, m);
    mk_buf_add_char(out, '}');
}

static void add_lengths(struct mk_buf *out, const struct duda_member *m, const char *what)
{
    if (m->min)
        mk_buf_addf(out, ",\"min%s\":%zu", what, m->min);
    if (m->max)
        mk_buf_addf(out, ",\"max%s\":%zu", what, m->max);
}

static void add_words(struct mk_buf *out, const char *const *words)
{
    mk_buf_add(out, MK_STR("{\"type\":\"string\",\"enum\":["));
    for (size_t i = 0; words && words[i]; i++) {
        if (i)
            mk_buf_add_char(out, ',');
        mk_json_string(out, mk_str_from_c(words[i]));
    }
    mk_buf_add(out, MK_STR("]}"));
}

static void add_shape(struct mk_buf *out, const struct duda_shape *shape, unsigned depth);

static void add_one(struct mk_buf *out, const struct duda_member *m, unsigned depth)
{
    switch (m->kind) {
    case DUDA_KIND_BOOL:
        mk_buf_add(out, MK_STR("{\"type\":\"boolean\"}"));
        break;
    case DUDA_KIND_INTEGER:
        add_integer(out, m);
        break;
    case DUDA_KIND_NUMBER:
        mk_buf_add(out, MK_STR("{\"type\":\"number\""));
        add_numbers(out, m);
        mk_buf_add_char(out, '}');
        break;
    case DUDA_KIND_TEXT:
        mk_buf_add(out, MK_STR("{\"type\":\"string\""));
        if (!m->is_list)
            add_lengths(out, m, "Length");
        mk_buf_add_char(out, '}');
        break;
    case DUDA_KIND_WORD:
        add_words(out, m->words);
        break;
    case DUDA_KIND_OBJECT:
        add_shape(out, m->shape, depth + 1);
        break;
    case DUDA_KIND_RAW:
    default:
        mk_buf_add(out, MK_STR("{}"));
        break;
    }
}

static void add_member(struct mk_buf *out, const struct duda_member *m, unsigned depth)
{
    if (!m->is_list) {
        add_one(out, m, depth);
        return;
    }
    mk_buf_add(out, MK_STR("{\"type\":\"array\",\"items\":"));
    add_one(out, m, depth);
    add_lengths(out, m, "Items");
    mk_buf_add_char(out, '}');
}

static void add_required(struct mk_buf *out, const struct duda_shape *shape)
{
    size_t n = 0;
    for (size_t i = 0; i < shape->n; i++) {
        if (shape->members[i].optional)
            continue;
        mk_buf_add(out, n++ ? MK_STR(",") : MK_STR(",\"required\":["));
        mk_json_string(out, mk_str_from_c(duda_member_name(&shape->members[i])));
    }
    if (n)
        mk_buf_add_char(out, ']');
}

static void add_shape(struct mk_buf *out, const struct duda_shape *shape, unsigned depth)
{
    if (!shape || depth > DEPTH_MAX) {
        mk_buf_add(out, MK_STR("{}"));
        return;
    }
    mk_buf_add(out, MK_STR("{\"type\":\"object\",\"properties\":{"));
    for (size_t i = 0; i < shape->n; i++) {
        if (i)
            mk_buf_add_char(out, ',');
        mk_json_string(out, mk_str_from_c(duda_member_name(&shape->members[i])));
        mk_buf_add_char(out, ':');
        add_member(out, &shape->members[i], depth);
    }
    mk_buf_add_char(out, '}');
    add_required(out, shape);
    if (!shape->ignores_unknown)
        mk_buf_add(out, MK_STR(",\"additionalProperties\":false"));
    mk_buf_add_char(out, '}');
}

void dev_schema_write_member(struct mk_buf *out, const struct duda_member *m)
{
    add_member(out, m, 0);
}

void dev_schema_write(struct mk_buf *out, const struct duda_shape *shape, bool is_list)
{
    if (is_list)
        mk_buf_add(out, MK_STR("{\"type\":\"array\",\"items\":"));
    add_shape(out, shape, 0);
    if (is_list)
        mk_buf_add_char(out, '}');
}
