/* SPDX-License-Identifier: Apache-2.0 */
/* Parses arbitrary JSON into values. */
#include <errno.h>
#include <monkey/json_value.h>

#include "text/json_cursor.h"

static bool convert_value(const struct mk_allocator *memory, const struct mk_json_value *v,
                          struct duda_value *out);

static bool convert_array(const struct mk_allocator *memory, const struct mk_json_value *v,
                          struct duda_value *out)
{
    struct duda_value *list = mk_allocator_zalloc(memory, v->n, sizeof *list);
    bool good = list != NULL;
    for (size_t i = 0; good && i < v->n; i++)
        good = convert_value(memory, &v->of.items[i], &list[i]);
    *out = duda_value_list(list, v->n);
    return good;
}

static bool convert_object(const struct mk_allocator *memory, const struct mk_json_value *v,
                           struct duda_value *out)
{
    struct duda_entry *map = mk_allocator_zalloc(memory, v->n, sizeof *map);
    bool good = map != NULL;
    for (size_t i = 0; good && i < v->n; i++) {
        map[i].name = v->of.members[i].name.p;
        good = convert_value(memory, &v->of.members[i].value, &map[i].value);
    }
    *out = duda_value_map(map, v->n);
    return good;
}

static bool convert_value(const struct mk_allocator *memory, const struct mk_json_value *v,
                          struct duda_value *out)
{
    switch (v->kind) {
    case MK_JSON_NULL:
        *out = duda_value_null();
        break;
    case MK_JSON_BOOL:
        *out = duda_value_bool(v->of.boolean);
        break;
    case MK_JSON_INTEGER:
        *out = duda_value_integer(v->of.integer);
        break;
    case MK_JSON_NUMBER:
        *out = duda_value_number(v->of.number);
        break;
    case MK_JSON_STRING:
        *out = duda_value_text(v->of.string);
        break;
    case MK_JSON_ARRAY:
        return convert_array(memory, v, out);
    case MK_JSON_OBJECT:
        return convert_object(memory, v, out);
    }
    return true;
}

int duda_json_read_value(mk_str text, const struct mk_allocator *memory, const struct mk_json_limits *limits,
                         struct duda_value *out, struct duda_validation_errors *errors)
{
    struct mk_json_value v;
    struct mk_json_error error;
    *out = duda_value_null();
    errors->n = 0;
    int e = mk_json_parse(text, memory, limits, &v, &error);
    if (!e && !convert_value(memory, &v, out))
        e = -ENOMEM;
    if (e && e != -ENOMEM)
        duda_json_cursor_set_error(errors, memory, &error);
    return e;
}
