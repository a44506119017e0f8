/* SPDX-License-Identifier: Apache-2.0 */
/* Parses JSON directly into structs, without a tree, so every error has a line and a column. */
#include <errno.h>
#include <monkey/text.h>

#include "text/json_cursor.h"

enum { MESSAGE_MAX = 512, LIST_FIRST = 8, NAME_SHOWN_MAX = 64 };

static bool read_object(struct duda_json_cursor *c, const struct duda_schema *schema, void *base,
                        const struct duda_field_path *path);

/* ---- Errors ---- */

/* Appends the path as in source code: `address.lines[2]`. */
static void append_field_path(struct mk_buf *out, const struct duda_field_path *path)
{
    if (path->up)
        append_field_path(out, path->up);
    if (path->name)
        mk_buf_addf(out, "%s%s", path->up ? "." : "", path->name);
    else
        mk_buf_addf(out, "[%zu]", path->index);
}

static void append_subject(struct mk_buf *out, const struct duda_field_path *path)
{
    if (!path) {
        mk_buf_add(out, MK_STR("the content"));
        return;
    }
    mk_buf_add_char(out, '`');
    append_field_path(out, path);
    mk_buf_add_char(out, '`');
}

static bool add_error(struct duda_json_cursor *c, size_t at, const struct duda_field_path *path,
                      const char *problem, const struct duda_schema_field *m, bool list)
{
    char buf[MESSAGE_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    append_subject(&text, path);
    mk_buf_add(&text, mk_str_from_c(problem));
    if (m)
        duda_schema_field_describe(&text, m, list);
    return duda_json_cursor_add_error(c, at, path, mk_buf_str(&text));
}

/* Skips a value of the wrong type. */
static bool skip_wrong_type(struct duda_json_cursor *c, const struct duda_schema_field *m,
                            const struct duda_field_path *path, bool list)
{
    (void)mk_json_reader_peek(&c->r);
    size_t at = c->r.at;
    mk_str ignored;
    return mk_json_reader_skip(&c->r, &ignored) && add_error(c, at, path, " must be ", m, list);
}

/* ---- Values ---- */

static bool read_number(struct duda_json_cursor *c, const struct duda_schema_field *m, void *at,
                        const struct duda_field_path *path)
{
    size_t begin = c->r.at;
    bool is_integer, good;
    mk_str text;
    if (!mk_json_reader_number(&c->r, &text, &is_integer))
        return false;
    struct duda_integer integer;
    double number;
    if (m->kind == DUDA_KIND_INTEGER)
        good =
            is_integer && duda_integer_parse(text, &integer) && duda_schema_field_put_integer(m, at, integer);
    else
        good = mk_json_number_parse(text, &number) && duda_schema_field_put_double(m, at, number);
    return good || add_error(c, begin, path, " must be ", m, false);
}

static bool read_text(struct duda_json_cursor *c, const struct duda_schema_field *m, void *at,
                      const struct duda_field_path *path)
{
    size_t begin = c->r.at;
    mk_str text;
    if (!mk_json_reader_string_copy(&c->r, &text))
        return false;
    bool good = m->kind == DUDA_KIND_STRING ? duda_schema_field_put_string(m, at, text)
                                            : duda_schema_field_put_enum(m, at, text);
    return good || add_error(c, begin, path, " must be ", m, false);
}

static bool read_bool(struct duda_json_cursor *c, const struct duda_schema_field *m, void *at,
                      const struct duda_field_path *path)
{
    bool truth = mk_json_reader_literal(&c->r, MK_STR("true"));
    if (!truth && !mk_json_reader_literal(&c->r, MK_STR("false")))
        return skip_wrong_type(c, m, path, false);
    memcpy(at, &truth, sizeof truth);
    return true;
}

/* Reads one value that is not a list. */
static bool read_single_value(struct duda_json_cursor *c, const struct duda_schema_field *m, void *at,
                              const struct duda_field_path *path)
{
    char next = mk_json_reader_peek(&c->r);
    mk_str raw;
    switch (m->kind) {
    case DUDA_KIND_BOOL:
        return read_bool(c, m, at, path);
    case DUDA_KIND_INTEGER:
    case DUDA_KIND_DOUBLE:
        return next == '-' || mk_char_is_digit(next) ? read_number(c, m, at, path)
                                                     : skip_wrong_type(c, m, path, false);
    case DUDA_KIND_STRING:
    case DUDA_KIND_ENUM:
        return next == '"' ? read_text(c, m, at, path) : skip_wrong_type(c, m, path, false);
    case DUDA_KIND_OBJECT:
        return next == '{' ? read_object(c, m->schema, at, path) : skip_wrong_type(c, m, path, false);
    case DUDA_KIND_JSON_RAW:
        break;
    }
    if (!mk_json_reader_skip(&c->r, &raw))
        return false;
    memcpy(at, &raw, sizeof raw);
    return true;
}

/* ---- Lists ---- */

/* Collects list elements until their number is known. */
struct growing_list {
    char *at;
    size_t n, cap;
};

static void *append_element(struct duda_json_cursor *c, struct growing_list *list, size_t size)
{
    if (list->n == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : LIST_FIRST;
        char *at = (char *)mk_allocator_zalloc(c->r.memory, cap, size);
        if (!at) {
            c->r.error = -ENOMEM;
            return NULL;
        }
        if (list->n)
            memcpy(at, list->at, list->n * size);
        list->at = at;
        list->cap = cap;
    }
    return list->at + list->n++ * size;
}

static bool read_elements(struct duda_json_cursor *c, const struct duda_schema_field *m,
                          struct growing_list *list, const struct duda_field_path *path)
{
    size_t begin = c->r.at;
    if (!mk_json_reader_enter(&c->r))
        return false;
    if (!mk_json_reader_accept(&c->r, ']'))
        do {
            struct duda_field_path here = {.up = path, .index = list->n};
            void *at = mk_json_reader_count(&c->r) ? append_element(c, list, m->size) : NULL;
            if (!at || !read_single_value(c, m, at, &here))
                return false;
        } while (mk_json_reader_next_element(&c->r, ']'));
    if (c->r.error)
        return false;
    mk_json_reader_leave(&c->r);
    return duda_schema_field_allows_count(m, list->n) || add_error(c, begin - 1, path, " must be ", m, true);
}

static bool read_list(struct duda_json_cursor *c, const struct duda_schema_field *m, void *base,
                      const struct duda_field_path *path)
{
    struct growing_list list = {NULL, 0, 0};
    if (!mk_json_reader_accept(&c->r, '['))
        return skip_wrong_type(c, m, path, true);
    if (!read_elements(c, m, &list, path))
        return false;
    memcpy((char *)base + m->offset, &list.at, sizeof list.at);
    memcpy((char *)base + m->count_offset, &list.n, sizeof list.n);
    return true;
}

/* ---- Objects ---- */

static bool read_field_value(struct duda_json_cursor *c, const struct duda_schema_field *m, void *base,
                             const struct duda_field_path *path)
{
    if (m->optional && mk_json_reader_peek(&c->r) == 'n' && mk_json_reader_literal(&c->r, MK_STR("null"))) {
        duda_schema_field_set_present(m, base, false);
        return true;
    }
    duda_schema_field_set_present(m, base, true);
    return m->is_list ? read_list(c, m, base, path) : read_single_value(c, m, (char *)base + m->offset, path);
}

static bool read_unknown_member(struct duda_json_cursor *c, const struct duda_schema *schema, mk_str name,
                                size_t at, const struct duda_field_path *path)
{
    char shown[NAME_SHOWN_MAX * 4];
    struct mk_buf clean = mk_buf_fixed(shown, sizeof shown - 1);
    mk_str ignored;
    if (!schema->allow_unknown) {
        mk_log_escape_to(&clean, mk_str_first(name, NAME_SHOWN_MAX), sizeof shown - 1);
        shown[clean.len] = '\0';
        struct duda_field_path here = {.up = path, .name = shown};
        if (!add_error(c, at, &here, " is unknown", NULL, false))
            return false;
    }
    return mk_json_reader_skip(&c->r, &ignored);
}

/* The fields of an object that were seen: one bit each. */
struct seen_fields {
    uint64_t bits[(DUDA_SCHEMA_FIELDS_MAX + 63) / 64];
};

static bool mark_seen(struct seen_fields *seen_fields, size_t i)
{
    uint64_t bit = UINT64_C(1) << i % 64, *word = &seen_fields->bits[i / 64];
    bool again = *word & bit;
    *word |= bit;
    return again;
}

static bool read_object_member(struct duda_json_cursor *c, const struct duda_schema *schema, void *base,
                               const struct duda_field_path *path, struct seen_fields *seen_fields)
{
    mk_str name;
    (void)mk_json_reader_peek(&c->r);
    size_t at = c->r.at;
    if (!mk_json_reader_count(&c->r) || !mk_json_reader_name(&c->r, &name) ||
        !mk_json_reader_expect(&c->r, ':', "`:`"))
        return false;
    size_t i = duda_schema_field_find(schema, name);
    if (i == MK_STR_NONE || i >= DUDA_SCHEMA_FIELDS_MAX)
        return read_unknown_member(c, schema, name, at, path);
    const struct duda_schema_field *m = duda_schema_field_at(schema, i);
    struct duda_field_path here = {.up = path, .name = duda_schema_field_name(m)};
    if (mark_seen(seen_fields, i) && !add_error(c, at, &here, " occurs more than once", NULL, false))
        return false;
    return read_field_value(c, m, base, &here);
}

static bool check_missing_fields(struct duda_json_cursor *c, const struct duda_schema *schema, void *base,
                                 const struct duda_field_path *path, struct seen_fields *seen_fields,
                                 size_t begin)
{
    for (size_t i = 0; i < schema->n && i < DUDA_SCHEMA_FIELDS_MAX; i++) {
        const struct duda_schema_field *m = duda_schema_field_at(schema, i);
        struct duda_field_path here = {.up = path, .name = duda_schema_field_name(m)};
        if (mark_seen(seen_fields, i))
            continue;
        if (m->optional)
            duda_schema_field_set_present(m, base, false);
        else if (!add_error(c, begin, &here, " is missing: it must be ", m, m->is_list))
            return false;
    }
    return true;
}

static bool run_struct_check(struct duda_json_cursor *c, const struct duda_schema *schema, const void *base,
                             const struct duda_field_path *path, size_t begin)
{
    const char *wrong_rule =
        schema->validate && !c->r.error && !c->is_invalid ? schema->validate(base) : NULL;
    return !wrong_rule || duda_json_cursor_add_error(c, begin, path, mk_str_from_c(wrong_rule));
}

static bool read_object(struct duda_json_cursor *c, const struct duda_schema *schema, void *base,
                        const struct duda_field_path *path)
{
    struct seen_fields seen_fields = {{0}};
    size_t begin = c->r.at;
    if (schema->n && !schema->field_size)
        return add_error(c, begin, path, " has a schema without `.field_size`: use DUDA_SCHEMA()", NULL,
                         false);
    if (!mk_json_reader_accept(&c->r, '{'))
        return add_error(c, begin, path, " must be an object", NULL, false);
    if (!mk_json_reader_enter(&c->r))
        return false;
    if (!mk_json_reader_accept(&c->r, '}'))
        do {
            if (!read_object_member(c, schema, base, path, &seen_fields))
                return false;
        } while (mk_json_reader_next_element(&c->r, '}'));
    if (c->r.error)
        return false;
    mk_json_reader_leave(&c->r);
    return check_missing_fields(c, schema, base, path, &seen_fields, begin) &&
           run_struct_check(c, schema, base, path, begin);
}

/* ---- Entry points ---- */

static int finish_reading(struct duda_json_cursor *c, bool good)
{
    if (good)
        (void)mk_json_reader_expect_end(&c->r);
    return duda_json_cursor_finish(c);
}

int duda_json_read(mk_str text, const struct duda_schema *schema, const struct mk_allocator *memory,
                   const struct mk_json_limits *limits, void *out, struct duda_validation_errors *errors)
{
    struct duda_json_cursor c;
    if (!duda_json_cursor_init(&c, text, memory, limits, errors))
        return duda_json_cursor_finish(&c);
    const struct duda_schema_field whole = {.kind = DUDA_KIND_OBJECT, .schema = schema, .size = schema->size};
    return finish_reading(&c, read_single_value(&c, &whole, out, NULL));
}

int duda_json_read_list(mk_str text, const struct duda_schema *schema, const struct mk_allocator *memory,
                        const struct mk_json_limits *limits, void *list, size_t *n,
                        struct duda_validation_errors *errors)
{
    struct duda_json_cursor c;
    struct growing_list grown = {NULL, 0, 0};
    if (!duda_json_cursor_init(&c, text, memory, limits, errors))
        return duda_json_cursor_finish(&c);
    const struct duda_schema_field whole = {
        .kind = DUDA_KIND_OBJECT, .schema = schema, .size = schema->size, .is_list = true};
    bool good = mk_json_reader_accept(&c.r, '[') ? read_elements(&c, &whole, &grown, NULL)
                                                 : skip_wrong_type(&c, &whole, NULL, true);
    memcpy(list, &grown.at, sizeof grown.at);
    *n = grown.n;
    return finish_reading(&c, good);
}
