/* SPDX-License-Identifier: Apache-2.0 */
#include <duda/value.h>
#include <monkey/text.h>

#include "text/schema_field.h"

bool duda_value_is_true(const struct duda_value *v)
{
    switch (v->kind) {
    case DUDA_VALUE_NULL:
        return false;
    case DUDA_VALUE_BOOL:
        return v->of.boolean;
    case DUDA_VALUE_TEXT:
    case DUDA_VALUE_BYTES:
        return v->of.text.len > 0;
    case DUDA_VALUE_LIST:
    case DUDA_VALUE_STRUCTS:
        return v->n > 0;
    case DUDA_VALUE_INTEGER:
    case DUDA_VALUE_UNSIGNED:
    case DUDA_VALUE_NUMBER:
    case DUDA_VALUE_RAW:
    case DUDA_VALUE_STRUCT:
    case DUDA_VALUE_MAP:
    case DUDA_VALUE_TIMESTAMP:
        break;
    }
    return true;
}

void duda_value_write(struct mk_buf *out, const struct duda_value *v)
{
    switch (v->kind) {
    case DUDA_VALUE_BOOL:
        mk_buf_add(out, v->of.boolean ? MK_STR("true") : MK_STR("false"));
        break;
    case DUDA_VALUE_INTEGER:
        mk_buf_add_int(out, v->of.integer);
        break;
    case DUDA_VALUE_UNSIGNED:
        mk_buf_add_num(out, v->of.uinteger);
        break;
    case DUDA_VALUE_NUMBER:
        duda_number_write(out, v->of.number);
        break;
    case DUDA_VALUE_TEXT:
    case DUDA_VALUE_RAW:
        mk_buf_add(out, v->of.text);
        break;
    case DUDA_VALUE_BYTES:
        mk_base64_encode(out, v->of.text);
        break;
    case DUDA_VALUE_TIMESTAMP:
        duda_timestamp_write(out, v->of.integer);
        break;
    case DUDA_VALUE_NULL:
    case DUDA_VALUE_LIST:
    case DUDA_VALUE_STRUCTS:
    case DUDA_VALUE_STRUCT:
    case DUDA_VALUE_MAP:
        break;
    }
}

bool duda_value_is_list(const struct duda_value *v)
{
    return v->kind == DUDA_VALUE_LIST || v->kind == DUDA_VALUE_STRUCTS;
}

struct duda_value duda_value_item(const struct duda_value *list, size_t i)
{
    if (!duda_value_is_list(list) || i >= list->n)
        return duda_value_null();
    if (list->kind == DUDA_VALUE_LIST)
        return list->of.list[i];
    const struct duda_schema_field *m = list->of.in.field;
    const char *at = (const char *)list->of.in.object;
    return m ? duda_schema_field_value_at(m, at + i * m->size)
             : duda_value_struct(list->of.in.schema, at + i * list->of.in.schema->size);
}

bool duda_value_member(const struct duda_value *v, mk_str name, struct duda_value *out)
{
    if (v->kind == DUDA_VALUE_STRUCT) {
        size_t i = duda_schema_field_find(v->of.in.schema, name);
        if (i != MK_STR_NONE)
            *out = duda_schema_field_value(duda_schema_field_at(v->of.in.schema, i), v->of.in.object);
        return i != MK_STR_NONE;
    }
    for (size_t i = 0; v->kind == DUDA_VALUE_MAP && i < v->n; i++)
        if (mk_str_eq(mk_str_from_c(v->of.map[i].name), name)) {
            *out = v->of.map[i].value;
            return true;
        }
    return false;
}

bool duda_value_member_at(const struct duda_value *v, size_t i, const char **name, struct duda_value *out)
{
    if (v->kind == DUDA_VALUE_STRUCT && i < v->of.in.schema->n) {
        const struct duda_schema_field *m = duda_schema_field_at(v->of.in.schema, i);
        *name = duda_schema_field_name(m);
        *out = duda_schema_field_value(m, v->of.in.object);
        return true;
    }
    if (v->kind != DUDA_VALUE_MAP || i >= v->n)
        return false;
    *name = v->of.map[i].name;
    *out = v->of.map[i].value;
    return true;
}
