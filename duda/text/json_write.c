/* SPDX-License-Identifier: Apache-2.0 */
/* Values as JSON. Lists of structs, which most answers are, are written without a value for each member. */
#include <duda/json.h>
#include <monkey/text.h>

#include "text/member.h"

static void write_value(struct mk_buf *out, const struct duda_value *v, size_t depth);

/* ---- Structs ---- */

static void write_name(struct mk_buf *out, const char *name)
{
    mk_buf_put(out, MK_STR(","));
    mk_json_string(out, mk_str_from_c(name));
    mk_buf_put(out, MK_STR(":"));
}

/* Names of members as they are written, with the comma ahead: once for all elements of a list. */
struct names {
    char room[240];
    unsigned char ends[16];
};

/* False: they are too many, or too long. */
static bool write_names(struct names *names, const struct duda_shape *shape)
{
    struct mk_buf room = mk_buf_fixed(names->room, sizeof names->room);
    for (size_t i = 0; i < shape->n; i++) {
        if (i == MK_LEN(names->ends))
            return false;
        write_name(&room, duda_member_name(&shape->members[i]));
        names->ends[i] = (unsigned char)room.len;
    }
    return !room.failed;
}

static void put_name(struct mk_buf *out, const struct names *names, size_t i)
{
    size_t from = i ? names->ends[i - 1] : 0;
    mk_buf_put(out, mk_str_of(names->room + from, names->ends[i] - from));
}

/* An optional member that is not there is left out. */
static void write_member(struct mk_buf *out, const struct duda_shape *shape, size_t i,
                         const struct names *names, const void *base, size_t depth)
{
    const struct duda_member *m = &shape->members[i];
    struct duda_value v;
    bool is_integer = m->kind == DUDA_KIND_INTEGER && !m->is_list && duda_member_has(m, base);
    if (!is_integer) {
        v = duda_member_value(m, base);
        if (m->optional && v.kind == DUDA_VALUE_NONE)
            return;
    }
    if (names)
        put_name(out, names, i);
    else
        write_name(out, duda_member_name(m));
    if (is_integer)
        duda_member_write_integer(out, m, base);
    else
        write_value(out, &v, depth);
}

/* The comma ahead of the first member becomes the bracket. */
static void end_members(struct mk_buf *out, size_t from)
{
    if (out->len == from)
        mk_buf_put(out, MK_STR("{"));
    else
        out->p[from] = '{';
    mk_buf_put(out, MK_STR("}"));
}

/* `names` may be NULL. */
static void write_struct(struct mk_buf *out, const struct duda_shape *shape, const struct names *names,
                         const void *base, size_t depth)
{
    size_t from = out->len;
    for (size_t i = 0; i < shape->n && !out->failed; i++)
        write_member(out, shape, i, names, base, depth);
    end_members(out, from);
}

/* ---- What has parts ---- */

static void write_list(struct mk_buf *out, const struct duda_value *v, size_t depth)
{
    struct names names;
    const struct duda_shape *shape = v->kind == DUDA_VALUE_PARTS && v->n > 1 && depth ? v->of.in.shape : NULL;
    bool has_names = shape && write_names(&names, shape);
    mk_buf_put(out, MK_STR("["));
    for (size_t i = 0; i < v->n && !out->failed; i++) {
        struct duda_value element = duda_value_item(v, i);
        if (i)
            mk_buf_put(out, MK_STR(","));
        if (has_names && element.kind == DUDA_VALUE_SHAPED)
            write_struct(out, shape, &names, element.of.in.at, depth - 1);
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
    end_members(out, from);
}

static void write_parts(struct mk_buf *out, const struct duda_value *v, size_t depth)
{
    if (depth == 0)
        mk_buf_put(out, MK_STR("null"));
    else if (v->kind == DUDA_VALUE_SHAPED)
        write_struct(out, v->of.in.shape, NULL, v->of.in.at, depth - 1);
    else if (v->kind == DUDA_VALUE_MAP)
        write_map(out, v, depth - 1);
    else
        write_list(out, v, depth - 1);
}

static void write_value(struct mk_buf *out, const struct duda_value *v, size_t depth)
{
    switch (v->kind) {
    case DUDA_VALUE_NONE:
        mk_buf_put(out, MK_STR("null"));
        break;
    case DUDA_VALUE_TEXT:
        mk_json_string(out, v->of.text);
        break;
    case DUDA_VALUE_SHAPED:
    case DUDA_VALUE_PARTS:
    case DUDA_VALUE_LIST:
    case DUDA_VALUE_MAP:
        write_parts(out, v, depth);
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
