/* SPDX-License-Identifier: Apache-2.0 */
#include "doc/schema.h"

#include <monkey/text.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEPTH_MAX = 8, NAME_MAX_ = 64 };

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

struct writing {
    struct mk_buf *out;
    struct dev_schemas *named; /* NULL: all is written where it is used */
};

static void add_shape(const struct writing *w, const struct duda_shape *shape, unsigned depth);

static void add_one(const struct writing *w, const struct duda_member *m, unsigned depth)
{
    struct mk_buf *out = w->out;
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
        add_shape(w, m->shape, depth + 1);
        break;
    case DUDA_KIND_RAW:
    default:
        mk_buf_add(out, MK_STR("{}"));
        break;
    }
}

static void add_member(const struct writing *w, const struct duda_member *m, unsigned depth)
{
    struct mk_buf *out = w->out;
    if (!m->is_list) {
        add_one(w, m, depth);
        return;
    }
    mk_buf_add(out, MK_STR("{\"type\":\"array\",\"items\":"));
    add_one(w, m, depth);
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

/* ---- Names ---- */

/* "struct line_item" is called "line_item": the characters that OpenAPI allows. */
static size_t copy_name(char room[NAME_MAX_], const char *type)
{
    size_t n = 0;
    mk_str rest = mk_str_from_c(type);
    if (mk_str_starts(rest, MK_STR("struct ")))
        rest = mk_str_skip(rest, 7);
    for (size_t i = 0; i < rest.len && n < NAME_MAX_ - 1; i++)
        if (mk_char_is_alpha(rest.p[i]) || mk_char_is_digit(rest.p[i]) || rest.p[i] == '_')
            room[n++] = rest.p[i];
    room[n] = '\0';
    return n;
}

/* Several shapes of one type are numbered. */
static void add_name(struct mk_buf *out, const struct dev_schemas *named, size_t at)
{
    char own[NAME_MAX_], other[NAME_MAX_];
    size_t before = 0;
    (void)copy_name(own, named->at[at]->name);
    before += mk_str_eq(mk_str_from_c(own), MK_STR("Problem")); /* that of RFC 9457 */
    for (size_t i = 0; i < at; i++) {
        (void)copy_name(other, named->at[i]->name);
        before += mk_str_eq(mk_str_from_c(own), mk_str_from_c(other));
    }
    mk_buf_add(out, mk_str_from_c(own));
    if (before)
        mk_buf_addf(out, "_%zu", before + 1);
}

/* False: the shape has no name. */
static bool add_reference(const struct writing *w, const struct duda_shape *shape)
{
    struct dev_schemas *named = w->named;
    char room[NAME_MAX_];
    size_t i = 0;
    if (!named || !shape->name || copy_name(room, shape->name) == 0)
        return false;
    while (i < named->n && named->at[i] != shape)
        i++;
    if (i == DEV_SCHEMAS_MAX)
        return false;
    if (i == named->n)
        named->at[named->n++] = shape;
    mk_buf_add(w->out, MK_STR("{\"$ref\":\"#/components/schemas/"));
    add_name(w->out, named, i);
    mk_buf_add(w->out, MK_STR("\"}"));
    return true;
}

static void add_object(const struct writing *w, const struct duda_shape *shape, unsigned depth)
{
    struct mk_buf *out = w->out;
    mk_buf_add(out, MK_STR("{\"type\":\"object\",\"properties\":{"));
    for (size_t i = 0; i < shape->n; i++) {
        if (i)
            mk_buf_add_char(out, ',');
        mk_json_string(out, mk_str_from_c(duda_member_name(&shape->members[i])));
        mk_buf_add_char(out, ':');
        add_member(w, &shape->members[i], depth);
    }
    mk_buf_add_char(out, '}');
    add_required(out, shape);
    if (!shape->ignores_unknown)
        mk_buf_add(out, MK_STR(",\"additionalProperties\":false"));
    mk_buf_add_char(out, '}');
}

static void add_shape(const struct writing *w, const struct duda_shape *shape, unsigned depth)
{
    if (!shape || depth > DEPTH_MAX)
        mk_buf_add(w->out, MK_STR("{}"));
    else if (!add_reference(w, shape))
        add_object(w, shape, depth);
}

void dev_schema_write_member(struct mk_buf *out, const struct duda_member *m)
{
    add_member(&(struct writing){.out = out}, m, 0);
}

void dev_schema_write(struct mk_buf *out, struct dev_schemas *named, const struct duda_shape *shape,
                      bool is_list)
{
    if (is_list)
        mk_buf_add(out, MK_STR("{\"type\":\"array\",\"items\":"));
    add_shape(&(struct writing){.out = out, .named = named}, shape, 0);
    if (is_list)
        mk_buf_add_char(out, '}');
}

void dev_schema_write_named(struct mk_buf *out, struct dev_schemas *named)
{
    for (size_t i = 0; i < named->n; i++) { /* members lead to more of them */
        mk_buf_add(out, MK_STR(",\n\""));
        add_name(out, named, i);
        mk_buf_add(out, MK_STR("\":"));
        add_object(&(struct writing){.out = out, .named = named}, named->at[i], 0);
    }
}
