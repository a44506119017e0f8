/* SPDX-License-Identifier: Apache-2.0 */
/* Values as JSON. Lists of structs, which most answers are, are written without a value for each member. */
#include <duda/json.h>
#include <monkey/text.h>

#include "text/member.h"

static void write_value(struct mk_buf *out, const struct duda_value *v, size_t depth);

static void write_list(struct mk_buf *out, const struct duda_value *v, size_t depth)
{
    mk_buf_put(out, MK_STR("["));
    for (size_t i = 0; i < v->n && !out->failed; i++) {
        struct duda_value element = duda_value_item(v, i);
        if (i)
            mk_buf_put(out, MK_STR(","));
        write_value(out, &element, depth);
    }
    mk_buf_put(out, MK_STR("]"));
}

static void begin_member(struct mk_buf *out, const char *name, bool *is_first)
{
    if (!*is_first)
        mk_buf_put(out, MK_STR(","));
    *is_first = false;
    mk_json_string(out, mk_str_from_c(name));
    mk_buf_put(out, MK_STR(":"));
}

/* An optional member that is not there is left out. */
static void write_member(struct mk_buf *out, const struct duda_member *m, const void *base, bool *is_first,
                         size_t depth)
{
    struct duda_value v;
    bool is_integer = m->kind == DUDA_KIND_INTEGER && !m->is_list && duda_member_has(m, base);
    if (!is_integer) {
        v = duda_member_value(m, base);
        if (m->optional && v.kind == DUDA_VALUE_NONE)
            return;
    }
    begin_member(out, duda_member_name(m), is_first);
    if (is_integer)
        duda_member_write_integer(out, m, base);
    else
        write_value(out, &v, depth);
}

static void write_struct(struct mk_buf *out, const struct duda_shape *shape, const void *base, size_t depth)
{
    bool is_first = true;
    mk_buf_put(out, MK_STR("{"));
    for (size_t i = 0; i < shape->n && !out->failed; i++)
        write_member(out, &shape->members[i], base, &is_first, depth);
    mk_buf_put(out, MK_STR("}"));
}

/* A null in a map is written. */
static void write_map(struct mk_buf *out, const struct duda_value *v, size_t depth)
{
    bool is_first = true;
    mk_buf_put(out, MK_STR("{"));
    for (size_t i = 0; i < v->n && !out->failed; i++) {
        begin_member(out, v->of.map[i].name, &is_first);
        write_value(out, &v->of.map[i].value, depth);
    }
    mk_buf_put(out, MK_STR("}"));
}

static void write_parts(struct mk_buf *out, const struct duda_value *v, size_t depth)
{
    if (depth == 0)
        mk_buf_put(out, MK_STR("null"));
    else if (v->kind == DUDA_VALUE_SHAPED)
        write_struct(out, v->of.in.shape, v->of.in.at, depth - 1);
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
