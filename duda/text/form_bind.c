/* SPDX-License-Identifier: Apache-2.0 */
/* Stores the fields of a form in structs. */
#include <duda/form.h>
#include <errno.h>
#include <monkey/json_reader.h>
#include <monkey/utf8.h>

#include "text/schema_field.h"

enum { NAME_MAX_LEN = 256, MESSAGE_MAX = 512 };

struct form_binding {
    const struct mk_form *fields;
    const struct mk_allocator *memory;
    struct duda_validation_errors *errors;
    int error;
};

/* Writes the name of the field: `home.street`. */
static void append_field_name(struct mk_buf *out, const struct duda_field_path *path)
{
    if (path->up) {
        append_field_name(out, path->up);
        mk_buf_add_char(out, '.');
    }
    mk_buf_add(out, mk_str_from_c(path->name));
}

/* Adds the error, unless the value is valid. */
static void add_rejection(struct form_binding *r, const struct duda_field_path *path, const char *name,
                          const struct duda_schema_field *m, bool is_list, struct duda_rejection rejection)
{
    char buf[MESSAGE_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    if (!rejection.code || r->error == -ENOMEM)
        return;
    r->error = rejection.is_out_of_memory ? -ENOMEM : -EINVAL;
    if (rejection.is_out_of_memory)
        return;
    mk_buf_addf(&text, "`%s`%s", name,
                strcmp(rejection.code, "required") == 0 ? " is missing: it must be " : " must be ");
    duda_schema_field_describe(&text, m, is_list);
    mk_str message = rejection.message ? mk_str_from_c(rejection.message) : mk_buf_str(&text);
    (void)duda_validation_errors_add(
        r->errors, r->memory,
        &(struct duda_violation){
            .path = path, .field = m, .is_list = is_list, .code = rejection.code, .message = message});
}

static bool parse_bool(mk_str text, bool *truth)
{
    static const char *const words[] = {"off", "on", "false", "true", "0", "1", "no", "yes"};
    for (size_t i = 0; i < MK_LEN(words); i++)
        if (mk_str_eq_nocase(text, mk_str_from_c(words[i]))) {
            *truth = i % 2;
            return true;
        }
    return false;
}

static struct duda_rejection store_field_value(const struct form_binding *r,
                                               const struct duda_schema_field *m, void *at, mk_str text)
{
    struct duda_integer integer;
    double number;
    bool truth;
    switch (m->kind) {
    case DUDA_KIND_BOOL:
        if (parse_bool(text, &truth))
            return duda_schema_field_put_bool(m, at, truth);
        break;
    case DUDA_KIND_INTEGER:
        if (duda_integer_parse(mk_str_trim(text), &integer))
            return duda_schema_field_put_integer(m, at, integer);
        break;
    case DUDA_KIND_DOUBLE:
        if (mk_json_number_parse(mk_str_trim(text), &number))
            return duda_schema_field_put_double(m, at, number);
        break;
    case DUDA_KIND_STRING:
    case DUDA_KIND_ENUM:
    case DUDA_KIND_BYTES:
    case DUDA_KIND_TIMESTAMP:
        if (mk_utf8_find_invalid(text) == MK_STR_NONE) {
            struct duda_rejection rejection = duda_schema_field_put_string(m, at, text, r->memory);
            if (rejection.code && m->kind == DUDA_KIND_STRING)
                memcpy(at, &text, sizeof text); /* a page that shows the form again contains it */
            return rejection;
        }
        break;
    case DUDA_KIND_OBJECT:
    case DUDA_KIND_JSON_RAW: /* no form field has these types */
        break;
    }
    return (struct duda_rejection){.code = "type"};
}

static void bind_list(struct form_binding *r, const struct duda_schema_field *m, void *base,
                      const struct duda_field_path *path, const char *name)
{
    size_t n = 0, good = 0;
    while (mk_form_get_at(r->fields, name, n).p)
        n++;
    char *list = (char *)mk_allocator_zalloc(r->memory, n, m->size);
    if (!list) {
        r->error = -ENOMEM;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct duda_field_path here = {.up = path, .index = i};
        struct duda_rejection rejection =
            store_field_value(r, m, list + i * m->size, mk_form_get_at(r->fields, name, i));
        good += !rejection.code;
        add_rejection(r, &here, name, m, false, rejection);
    }
    if (good == n)
        add_rejection(r, path, name, m, true, duda_schema_field_check_list(m, list, n, r->memory));
    memcpy((char *)base + m->offset, &list, sizeof list);
    memcpy((char *)base + m->count_offset, &n, sizeof n);
}

/* ---- Maps ---- */

/* Returns the part of the field's name after `prefix.`; absent if the name does not begin with it. */
static mk_str entry_name(mk_str name, mk_str prefix)
{
    bool is_entry = name.len > prefix.len + 1 && mk_str_starts(name, prefix) && name.p[prefix.len] == '.';
    return is_entry ? mk_str_skip(name, prefix.len + 1) : MK_STR_NULL;
}

static void bind_entry(struct form_binding *r, const struct duda_schema_field *m, char *entry,
                       const struct duda_field_path *path, mk_str name, const struct mk_form_field *field)
{
    const struct duda_schema_field *key = duda_schema_field_at(m->schema, 0);
    const struct duda_schema_field *value = duda_schema_field_at(m->schema, 1);
    struct duda_field_path here = {.up = path, .name = name.p};
    add_rejection(r, &here, field->name.p, key, false, store_field_value(r, key, entry + key->offset, name));
    duda_schema_field_set_present(value, entry, true);
    add_rejection(r, &here, field->name.p, value, false,
                  store_field_value(r, value, entry + value->offset, field->value));
}

/* Returns whether an earlier field has the same name, which is an error in a map. */
static bool is_repeated_field(const struct mk_form *form, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (mk_str_eq(form->fields[i].name, form->fields[at].name))
            return true;
    return false;
}

/* Fields such as `stock.red` are the entries of the map `stock`. */
static void bind_map(struct form_binding *r, const struct duda_schema_field *m, void *base,
                     const struct duda_field_path *path, const char *name)
{
    size_t n = 0;
    char *map = (char *)mk_allocator_zalloc(r->memory, r->fields->n, m->size);
    if (!map) {
        r->error = -ENOMEM;
        return;
    }
    for (size_t i = 0; i < r->fields->n && m->schema->n == 2; i++) {
        const struct mk_form_field *field = &r->fields->fields[i];
        mk_str key = entry_name(field->name, mk_str_from_c(name));
        if (!key.p)
            continue;
        if (is_repeated_field(r->fields, i))
            add_rejection(
                r, path, name, m, true,
                (struct duda_rejection){.code = "duplicate", .message = "a name occurs more than once"});
        bind_entry(r, m, map + n++ * m->size, path, key, field);
    }
    add_rejection(r, path, name, m, true, duda_schema_field_check_list(m, map, n, r->memory));
    memcpy((char *)base + m->offset, &map, sizeof map);
    memcpy((char *)base + m->count_offset, &n, sizeof n);
}

/* ---- Structs ---- */

static void bind_field(struct form_binding *r, const struct duda_schema_field *m, void *base,
                       const struct duda_field_path *path, const char *name)
{
    mk_str text = mk_form_get(r->fields, name);
    bool keeps_empty = m->kind == DUDA_KIND_STRING && m->min_length == 0;
    if (text.p && (text.len || keeps_empty)) {
        duda_schema_field_set_present(m, base, true);
        add_rejection(r, path, name, m, false, store_field_value(r, m, (char *)base + m->offset, text));
    } else if (m->kind == DUDA_KIND_BOOL) { /* an unchecked checkbox */
        duda_schema_field_set_present(m, base, false);
        memcpy((char *)base + m->offset, &(bool){false}, sizeof(bool));
    } else if (!m->optional) {
        add_rejection(r, path, name, m, false, (struct duda_rejection){.code = "required"});
    } else if (text.p) { /* an empty field */
        (void)duda_schema_field_clear(m, base);
    }
}

static void bind_struct(struct form_binding *r, const struct duda_schema *schema, void *base,
                        const struct duda_field_path *path)
{
    for (size_t i = 0; i < schema->n && r->error != -ENOMEM; i++) {
        const struct duda_schema_field *m = duda_schema_field_at(schema, i);
        struct duda_field_path here = {.up = path, .name = duda_schema_field_name(m)};
        char name[NAME_MAX_LEN];
        struct mk_buf b = mk_buf_fixed(name, sizeof name - 1);
        append_field_name(&b, &here);
        name[b.len] = '\0';
        if (m->is_map)
            bind_map(r, m, base, &here, name);
        else if (m->is_list)
            bind_list(r, m, base, &here, name);
        else if (m->kind == DUDA_KIND_OBJECT)
            bind_struct(r, m->schema, (char *)base + m->offset, &here);
        else
            bind_field(r, m, base, &here, name);
    }
    const char *wrong = schema->validate && !r->error ? schema->validate(base) : NULL;
    if (wrong) {
        r->error = -EINVAL;
        (void)duda_validation_errors_add(
            r->errors, r->memory,
            &(struct duda_violation){.path = path, .code = "check", .message = mk_str_from_c(wrong)});
    }
}

int duda_form_data_bind(const struct mk_form *f, const struct duda_schema *schema,
                        const struct mk_allocator *memory, void *out, struct duda_validation_errors *errors)
{
    struct form_binding r = {.fields = f, .memory = memory, .errors = errors};
    errors->n = 0;
    bind_struct(&r, schema, out, NULL);
    return r.error;
}
