/* SPDX-License-Identifier: Apache-2.0 */
/* Values as JSON. */
#include <duda/json.h>
#include <monkey/text.h>

static void write_value(struct mk_buf *out, const struct duda_value *v, size_t depth);

static void write_list(struct mk_buf *out, const struct duda_value *v, size_t depth)
{
    mk_buf_add_char(out, '[');
    for (size_t i = 0; i < v->n && !out->failed; i++) {
        struct duda_value element = duda_value_item(v, i);
        if (i)
            mk_buf_add_char(out, ',');
        write_value(out, &element, depth);
    }
    mk_buf_add_char(out, ']');
}

/* An optional member of a struct that is not there is left out; a null in a map is written. */
static void write_members(struct mk_buf *out, const struct duda_value *v, size_t depth)
{
    const char *name;
    struct duda_value member;
    bool first = true;
    mk_buf_add_char(out, '{');
    for (size_t i = 0; duda_value_member_at(v, i, &name, &member) && !out->failed; i++) {
        if (v->kind == DUDA_VALUE_SHAPED && v->of.in.shape->members[i].optional &&
            member.kind == DUDA_VALUE_NONE)
            continue;
        if (!first)
            mk_buf_add_char(out, ',');
        first = false;
        mk_json_string(out, mk_str_from_c(name));
        mk_buf_add_char(out, ':');
        write_value(out, &member, depth);
    }
    mk_buf_add_char(out, '}');
}

static void write_value(struct mk_buf *out, const struct duda_value *v, size_t depth)
{
    bool has_parts = duda_value_is_list(v) || v->kind == DUDA_VALUE_SHAPED || v->kind == DUDA_VALUE_MAP;
    if (v->kind == DUDA_VALUE_NONE || (has_parts && depth == 0))
        mk_buf_add(out, MK_STR("null"));
    else if (v->kind == DUDA_VALUE_TEXT)
        mk_json_string(out, v->of.text);
    else if (duda_value_is_list(v))
        write_list(out, v, depth - 1);
    else if (has_parts)
        write_members(out, v, depth - 1);
    else
        duda_value_write(out, v);
}

void duda_json_write(struct mk_buf *out, const struct duda_value *v)
{
    write_value(out, v, DUDA_JSON_DEPTH_MAX);
}
