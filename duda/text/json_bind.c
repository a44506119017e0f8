/* SPDX-License-Identifier: Apache-2.0 */
/* Parses JSON directly into structs, without a tree, so every error has a line and a column. */
#include <errno.h>
#include <monkey/text.h>

#include "text/json_cursor.h"

enum { MESSAGE_MAX = 512, LIST_FIRST = 8, NAME_SHOWN_MAX = 64 };

static bool read_object(struct duda_json_cursor *c, const struct duda_schema *schema, void *base,
                        const struct duda_field_path *path);
static bool read_field_value(struct duda_json_cursor *c, const struct duda_schema_field *m, void *base,
                             const struct duda_field_path *path);
static bool run_struct_check(struct duda_json_cursor *c, const struct duda_schema *schema, const void *base,
                             const struct duda_field_path *path, size_t begin);

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
                      const char *code, const char *problem)
{
    char buf[MESSAGE_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    append_subject(&text, path);
    mk_buf_add(&text, mk_str_from_c(problem));
    return duda_json_cursor_add_error(
        c, at, &(struct duda_violation){.path = path, .code = code, .message = mk_buf_str(&text)});
}

/* Adds an error whose message describes the rules of the field, or of a list. */
static bool add_rule_error(struct duda_json_cursor *c, size_t at, const struct duda_field_path *path,
                           const struct duda_schema_field *m, bool is_list, const char *code)
{
    char buf[MESSAGE_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    append_subject(&text, path);
    mk_buf_add(&text,
               strcmp(code, "required") == 0 ? MK_STR(" is missing: it must be ") : MK_STR(" must be "));
    duda_schema_field_describe(&text, m, is_list);
    return duda_json_cursor_add_error(
        c, at,
        &(struct duda_violation){
            .path = path, .field = m, .is_list = is_list, .code = code, .message = mk_buf_str(&text)});
}

/* Adds the error, unless the value is valid. Returns whether reading can continue. */
static bool add_rejection(struct duda_json_cursor *c, size_t at, const struct duda_field_path *path,
                          const struct duda_schema_field *m, bool is_list, struct duda_rejection r)
{
    if (!r.code)
        return true;
    if (r.is_out_of_memory) {
        c->r.error = -ENOMEM;
        return false;
    }
    if (!r.message)
        return add_rule_error(c, at, path, m, is_list, r.code);
    return duda_json_cursor_add_error(
        c, at,
        &(struct duda_violation){
            .path = path, .field = m, .code = r.code, .message = mk_str_from_c(r.message)});
}

/* Skips a value that cannot be read because of a mistake in the service. */
static bool skip_with_error(struct duda_json_cursor *c, const struct duda_field_path *path,
                            const char *problem)
{
    size_t at = c->r.at;
    mk_str ignored;
    return mk_json_reader_skip(&c->r, &ignored) && add_error(c, at, path, "type", problem);
}

/* Skips a value of the wrong type. */
static bool skip_wrong_type(struct duda_json_cursor *c, const struct duda_schema_field *m,
                            const struct duda_field_path *path, bool list)
{
    (void)mk_json_reader_peek(&c->r);
    size_t at = c->r.at;
    mk_str ignored;
    return mk_json_reader_skip(&c->r, &ignored) && add_rule_error(c, at, path, m, list, "type");
}

/* ---- Values ---- */

static bool read_number(struct duda_json_cursor *c, const struct duda_schema_field *m, void *at,
                        const struct duda_field_path *path)
{
    size_t begin = c->r.at;
    struct duda_rejection rejection = {.code = "type"};
    struct duda_integer integer;
    bool is_integer;
    double number;
    mk_str text;
    if (!mk_json_reader_number(&c->r, &text, &is_integer))
        return false;
    if (m->kind == DUDA_KIND_DOUBLE && mk_json_number_parse(text, &number))
        rejection = duda_schema_field_put_double(m, at, number);
    else if (m->kind == DUDA_KIND_INTEGER && is_integer && duda_integer_parse(text, &integer))
        rejection = duda_schema_field_put_integer(m, at, integer);
    return add_rejection(c, begin, path, m, false, rejection);
}

static bool read_text(struct duda_json_cursor *c, const struct duda_schema_field *m, void *at,
                      const struct duda_field_path *path)
{
    size_t begin = c->r.at;
    mk_str text;
    return mk_json_reader_string_copy(&c->r, &text) &&
           add_rejection(c, begin, path, m, false, duda_schema_field_put_string(m, at, text, c->r.memory));
}

static bool read_bool(struct duda_json_cursor *c, const struct duda_schema_field *m, void *at,
                      const struct duda_field_path *path)
{
    size_t begin = c->r.at;
    bool truth = mk_json_reader_literal(&c->r, MK_STR("true"));
    if (!truth && !mk_json_reader_literal(&c->r, MK_STR("false")))
        return skip_wrong_type(c, m, path, false);
    return add_rejection(c, begin, path, m, false, duda_schema_field_put_bool(m, at, truth));
}

/* Runs the custom check of an object or a raw value, unless errors were found: the check may rely on the
 * rules. */
static bool run_field_check(struct duda_json_cursor *c, const struct duda_schema_field *m, const void *at,
                            const struct duda_field_path *path, size_t begin)
{
    return c->is_invalid || !m->check ||
           add_rejection(c, begin, path, m, false, duda_schema_field_run_check(m, at));
}

static bool read_raw(struct duda_json_cursor *c, const struct duda_schema_field *m, void *at,
                     const struct duda_field_path *path)
{
    size_t begin = c->r.at;
    mk_str raw;
    if (!mk_json_reader_skip(&c->r, &raw))
        return false;
    memcpy(at, &raw, sizeof raw);
    return run_field_check(c, m, at, path, begin);
}

/* Reads one value that is not a list. */
static bool read_single_value(struct duda_json_cursor *c, const struct duda_schema_field *m, void *at,
                              const struct duda_field_path *path)
{
    char next = mk_json_reader_peek(&c->r);
    size_t begin = c->r.at;
    switch (m->kind) {
    case DUDA_KIND_BOOL:
        return read_bool(c, m, at, path);
    case DUDA_KIND_INTEGER:
    case DUDA_KIND_DOUBLE:
        return next == '-' || mk_char_is_digit(next) ? read_number(c, m, at, path)
                                                     : skip_wrong_type(c, m, path, false);
    case DUDA_KIND_STRING:
    case DUDA_KIND_ENUM:
    case DUDA_KIND_BYTES:
    case DUDA_KIND_TIMESTAMP:
        return next == '"' ? read_text(c, m, at, path) : skip_wrong_type(c, m, path, false);
    case DUDA_KIND_OBJECT:
        return next == '{' ? read_object(c, m->schema, at, path) && run_field_check(c, m, at, path, begin)
                           : skip_wrong_type(c, m, path, false);
    case DUDA_KIND_JSON_RAW:
        break;
    }
    return read_raw(c, m, at, path);
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
    return add_rejection(c, begin - 1, path, m, true,
                         duda_schema_field_check_list(m, list->at, list->n, c->r.memory));
}

/* ---- Maps ---- */

/* Reads one entry: `"name": value`. */
static bool read_entry(struct duda_json_cursor *c, const struct duda_schema_field *m,
                       struct growing_list *map, const struct duda_field_path *path)
{
    const struct duda_schema_field *key = duda_schema_field_at(m->schema, 0);
    mk_str name;
    (void)mk_json_reader_peek(&c->r);
    size_t begin = c->r.at;
    if (!mk_json_reader_count(&c->r) || !mk_json_reader_name(&c->r, &name) ||
        !mk_json_reader_expect(&c->r, ':', "`:`"))
        return false;
    char *entry = (char *)append_element(c, map, m->size);
    char *text = entry ? (char *)mk_allocator_zalloc(c->r.memory, name.len + 1, 1) : NULL;
    if (!text) {
        c->r.error = -ENOMEM;
        return false;
    }
    memcpy(text, name.p, name.len);
    struct duda_field_path here = {.up = path, .name = text};
    return add_rejection(c, begin, &here, key, false,
                         duda_schema_field_put_string(key, entry + key->offset, mk_str_of(text, name.len),
                                                      c->r.memory)) &&
           read_field_value(c, duda_schema_field_at(m->schema, 1), entry, &here) &&
           run_struct_check(c, m->schema, entry, &here, begin);
}

/* Checks that no name occurs twice, using the check for lists of strings. */
static bool check_names_differ(struct duda_json_cursor *c, const struct duda_schema_field *m,
                               const struct growing_list *map, const struct duda_field_path *path,
                               size_t begin)
{
    const struct duda_schema_field names = {
        .kind = DUDA_KIND_STRING, .size = m->size, .is_list = true, .is_unique = true};
    size_t offset = duda_schema_field_at(m->schema, 0)->offset;
    if (map->n < 2)
        return true;
    struct duda_rejection r = duda_schema_field_check_list(&names, map->at + offset, map->n, c->r.memory);
    if (!r.code || r.is_out_of_memory)
        return add_rejection(c, begin, path, m, true, r);
    return add_error(c, begin, path, "duplicate", " contains a name more than once");
}

static bool is_map_schema(const struct duda_schema *schema)
{
    return schema && schema->field_size && schema->n == 2 &&
           duda_schema_field_at(schema, 0)->kind == DUDA_KIND_STRING;
}

static bool read_map(struct duda_json_cursor *c, const struct duda_schema_field *m, struct growing_list *map,
                     const struct duda_field_path *path)
{
    size_t begin = c->r.at;
    if (!is_map_schema(m->schema))
        return skip_with_error(c, path, " has a schema that is not that of a map: see DUDA_MAP()");
    if (!mk_json_reader_accept(&c->r, '{'))
        return skip_wrong_type(c, m, path, true);
    if (!mk_json_reader_enter(&c->r))
        return false;
    if (!mk_json_reader_accept(&c->r, '}'))
        do {
            if (!read_entry(c, m, map, path))
                return false;
        } while (mk_json_reader_next_element(&c->r, '}'));
    if (c->r.error)
        return false;
    mk_json_reader_leave(&c->r);
    return check_names_differ(c, m, map, path, begin) &&
           add_rejection(c, begin, path, m, true,
                         duda_schema_field_check_list(m, map->at, map->n, c->r.memory));
}

static bool read_list(struct duda_json_cursor *c, const struct duda_schema_field *m, void *base,
                      const struct duda_field_path *path)
{
    struct growing_list list = {NULL, 0, 0};
    if (m->is_map) {
        (void)mk_json_reader_peek(&c->r);
        if (!read_map(c, m, &list, path))
            return false;
    } else if (!mk_json_reader_accept(&c->r, '[')) {
        return skip_wrong_type(c, m, path, true);
    } else if (!read_elements(c, m, &list, path)) {
        return false;
    }
    memcpy((char *)base + m->offset, &list.at, sizeof list.at);
    memcpy((char *)base + m->count_offset, &list.n, sizeof list.n);
    return true;
}

/* ---- Objects ---- */

/* Reads the null of an optional member. A merge patch must not seem to clear a member that cannot be empty. */
static bool read_null(struct duda_json_cursor *c, const struct duda_schema_field *m, void *base, size_t at,
                      const struct duda_field_path *path)
{
    return duda_schema_field_clear(m, base) || !c->is_merge || add_rule_error(c, at, path, m, false, "type");
}

/* Reads the value of a member. A list, a map, and an object that the struct lacks are replaced as a whole,
 * even by a merge patch. */
static bool read_field_value(struct duda_json_cursor *c, const struct duda_schema_field *m, void *base,
                             const struct duda_field_path *path)
{
    bool is_merge = c->is_merge, is_null = m->optional && mk_json_reader_peek(&c->r) == 'n';
    size_t begin = c->r.at;
    if (is_null && mk_json_reader_literal(&c->r, MK_STR("null")))
        return read_null(c, m, base, begin, path);
    c->is_merge = is_merge && !m->is_list && duda_schema_field_is_present(m, base);
    duda_schema_field_set_present(m, base, true);
    bool ok =
        m->is_list ? read_list(c, m, base, path) : read_single_value(c, m, (char *)base + m->offset, path);
    c->is_merge = is_merge;
    return ok;
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
        if (!add_error(c, at, &here, "unknown", " is unknown"))
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
    if (mark_seen(seen_fields, i) && !add_error(c, at, &here, "duplicate", " occurs more than once"))
        return false;
    return read_field_value(c, m, base, &here);
}

/* An optional member that the text lacks stays as it is, and so does its presence flag. */
static bool check_missing_fields(struct duda_json_cursor *c, const struct duda_schema *schema,
                                 const struct duda_field_path *path, struct seen_fields *seen_fields,
                                 size_t begin)
{
    for (size_t i = 0; i < schema->n && i < DUDA_SCHEMA_FIELDS_MAX; i++) {
        const struct duda_schema_field *m = duda_schema_field_at(schema, i);
        struct duda_field_path here = {.up = path, .name = duda_schema_field_name(m)};
        if (!mark_seen(seen_fields, i) && !m->optional &&
            !add_rule_error(c, begin, &here, m, m->is_list, "required"))
            return false;
    }
    return true;
}

static bool run_struct_check(struct duda_json_cursor *c, const struct duda_schema *schema, const void *base,
                             const struct duda_field_path *path, size_t begin)
{
    const char *wrong_rule =
        schema->validate && !c->r.error && !c->is_invalid ? schema->validate(base) : NULL;
    return !wrong_rule ||
           duda_json_cursor_add_error(
               c, begin,
               &(struct duda_violation){.path = path, .code = "check", .message = mk_str_from_c(wrong_rule)});
}

static bool read_object(struct duda_json_cursor *c, const struct duda_schema *schema, void *base,
                        const struct duda_field_path *path)
{
    struct seen_fields seen_fields = {{0}};
    size_t begin = c->r.at;
    if (schema->n && !schema->field_size)
        return skip_with_error(c, path, " has a schema without `.field_size`: use DUDA_SCHEMA()");
    if (!mk_json_reader_accept(&c->r, '{'))
        return add_error(c, begin, path, "type", " must be an object");
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
    return (c->is_merge || check_missing_fields(c, schema, path, &seen_fields, begin)) &&
           run_struct_check(c, schema, base, path, begin);
}

/* ---- Entry points ---- */

static int finish_reading(struct duda_json_cursor *c, bool good)
{
    if (good)
        (void)mk_json_reader_expect_end(&c->r);
    return duda_json_cursor_finish(c);
}

static int read_struct(mk_str text, const struct duda_schema *schema, const struct mk_allocator *memory,
                       const struct mk_json_limits *limits, void *out, bool is_merge,
                       struct duda_validation_errors *errors)
{
    struct duda_json_cursor c;
    if (!duda_json_cursor_init(&c, text, memory, limits, errors))
        return duda_json_cursor_finish(&c);
    c.is_merge = is_merge;
    const struct duda_schema_field whole = {.kind = DUDA_KIND_OBJECT, .schema = schema, .size = schema->size};
    return finish_reading(&c, read_single_value(&c, &whole, out, NULL));
}

int duda_json_read(mk_str text, const struct duda_schema *schema, const struct mk_allocator *memory,
                   const struct mk_json_limits *limits, void *out, struct duda_validation_errors *errors)
{
    return read_struct(text, schema, memory, limits, out, false, errors);
}

int duda_json_merge(mk_str text, const struct duda_schema *schema, const struct mk_allocator *memory,
                    const struct mk_json_limits *limits, void *out, struct duda_validation_errors *errors)
{
    return read_struct(text, schema, memory, limits, out, true, errors);
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
