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

static void add_validation_error(struct form_binding *r, const struct duda_field_path *path, const char *name,
                                 const char *problem, const struct duda_schema_field *m, bool list)
{
    char buf[MESSAGE_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    mk_buf_addf(&text, "`%s`%s", name, problem);
    duda_schema_field_describe(&text, m, list);
    r->error = -EINVAL;
    (void)duda_validation_errors_add(r->errors, r->memory, path, mk_buf_str(&text));
}

static bool store_bool(void *at, mk_str text)
{
    static const char *const words[] = {"off", "on", "false", "true", "0", "1", "no", "yes"};
    for (size_t i = 0; i < MK_LEN(words); i++)
        if (mk_str_eq_nocase(text, mk_str_from_c(words[i]))) {
            bool truth = i % 2;
            memcpy(at, &truth, sizeof truth);
            return true;
        }
    return false;
}

static bool store_field_value(const struct duda_schema_field *m, void *at, mk_str text)
{
    struct duda_integer integer;
    double number;
    switch (m->kind) {
    case DUDA_KIND_BOOL:
        return store_bool(at, text);
    case DUDA_KIND_INTEGER:
        return duda_integer_parse(mk_str_trim(text), &integer) &&
               duda_schema_field_put_integer(m, at, integer);
    case DUDA_KIND_DOUBLE:
        return mk_json_number_parse(mk_str_trim(text), &number) &&
               duda_schema_field_put_double(m, at, number);
    case DUDA_KIND_STRING:
        return mk_utf8_find_invalid(text) == MK_STR_NONE && duda_schema_field_put_string(m, at, text);
    case DUDA_KIND_ENUM:
        return duda_schema_field_put_enum(m, at, text);
    case DUDA_KIND_OBJECT:
    case DUDA_KIND_JSON_RAW:
        break;
    }
    return false; /* objects and raw JSON: no form field has these types */
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
        if (store_field_value(m, list + i * m->size, mk_form_get_at(r->fields, name, i)))
            good++;
        else
            add_validation_error(r, &here, name, " must be ", m, false);
    }
    if (good == n && !duda_schema_field_allows_count(m, n))
        add_validation_error(r, path, name, " must be ", m, true);
    memcpy((char *)base + m->offset, &list, sizeof list);
    memcpy((char *)base + m->count_offset, &n, sizeof n);
}

static void bind_field(struct form_binding *r, const struct duda_schema_field *m, void *base,
                       const struct duda_field_path *path, const char *name)
{
    mk_str text = mk_form_get(r->fields, name);
    bool keeps_empty = m->kind == DUDA_KIND_STRING && m->min_length == 0;
    bool is_there = text.p && (text.len || keeps_empty);
    duda_schema_field_set_present(m, base, is_there);
    if (is_there) {
        if (!store_field_value(m, (char *)base + m->offset, text))
            add_validation_error(r, path, name, " must be ", m, false);
    } else if (m->kind == DUDA_KIND_BOOL) {
        memcpy((char *)base + m->offset, &(bool){false}, sizeof(bool));
    } else if (!m->optional) {
        add_validation_error(r, path, name, " is missing: it must be ", m, false);
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
        if (m->is_list)
            bind_list(r, m, base, &here, name);
        else if (m->kind == DUDA_KIND_OBJECT)
            bind_struct(r, m->schema, (char *)base + m->offset, &here);
        else
            bind_field(r, m, base, &here, name);
    }
    const char *wrong = schema->validate && !r->error ? schema->validate(base) : NULL;
    if (wrong) {
        r->error = -EINVAL;
        (void)duda_validation_errors_add(r->errors, r->memory, path, mk_str_from_c(wrong));
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
