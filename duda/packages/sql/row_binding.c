/* SPDX-License-Identifier: Apache-2.0 */
#include "row_binding.h"

#include <duda/json.h>
#include <errno.h>
#include <math.h>

#include "array_text.h"

enum { NAME_MAX_LEN = 256, DEPTH_MAX = 4, JSON_MAX = 16 << 20, SECOND_US = 1000000 };

/* ---- Matching of columns ---- */

static bool is_named(mk_str column, mk_str prefix, const char *name)
{
    if (prefix.len && !mk_str_starts(column, prefix))
        return false;
    const char *rest = column.p + prefix.len;
    size_t len = column.len - prefix.len;
    return strncmp(rest, name, len) == 0 && name[len] == '\0';
}

/* Returns the first column with this name. The search begins at the column `first` and continues at column 0,
 * since columns usually have the order of the members. MK_STR_NONE: there is none. */
static size_t find_column(const struct duda_sql_result *result, size_t first, mk_str prefix, const char *name)
{
    for (size_t i = first; i < result->n_columns; i++)
        if (is_named(result->columns[i], prefix, name))
            return i;
    for (size_t i = 0; i < first && i < result->n_columns; i++)
        if (is_named(result->columns[i], prefix, name))
            return i;
    return MK_STR_NONE;
}

static bool has_columns_of(const struct duda_sql_result *result, mk_str prefix)
{
    for (size_t i = 0; i < result->n_columns; i++)
        if (result->columns[i].len > prefix.len && mk_str_starts(result->columns[i], prefix) &&
            result->columns[i].p[prefix.len] == '.')
            return true;
    return false;
}

static enum sql_column_form column_form_of(const struct duda_schema_field *m)
{
    if (m->is_list || m->presence_offset)
        return SQL_COLUMN_OTHER;
    if (m->kind == DUDA_KIND_INTEGER && m->is_signed)
        return m->size == 8 ? SQL_COLUMN_INT64 : m->size == 4 ? SQL_COLUMN_INT32 : SQL_COLUMN_OTHER;
    return m->kind == DUDA_KIND_DOUBLE   ? SQL_COLUMN_DOUBLE
           : m->kind == DUDA_KIND_BOOL   ? SQL_COLUMN_BOOL
           : m->kind == DUDA_KIND_STRING ? SQL_COLUMN_TEXT
                                         : SQL_COLUMN_OTHER;
}

/* A struct, and the prefix of the names of its columns, such as "home.". */
struct prefix {
    const struct duda_schema *schema;
    size_t n_matched; /* number of members that match_in_order() has matched */
    size_t base;
    mk_str name;
    unsigned depth;
};

static int match_struct(struct sql_row_binding *b, const struct duda_sql_result *result,
                        const struct prefix *prefix);

static int match_nested_struct(struct sql_row_binding *b, const struct duda_sql_result *result,
                               const struct duda_schema_field *m, const struct prefix *outer, mk_str name)
{
    char buf[NAME_MAX_LEN];
    struct mk_buf dotted = mk_buf_fixed(buf, sizeof buf);
    mk_buf_addf(&dotted, "%.*s.", MK_STR_ARG(name));
    return match_struct(b, result,
                        &(struct prefix){.schema = m->schema,
                                         .base = outer->base + m->offset,
                                         .name = mk_buf_str(&dotted),
                                         .depth = outer->depth + 1});
}

static int set_match_error(struct sql_row_binding *b, const char *subject, mk_str name, const char *problem)
{
    struct mk_buf out = mk_buf_fixed(b->message, sizeof b->message - 1);
    mk_buf_addf(&out, "%s `%.*s` %s", subject, MK_STR_ARG(name), problem);
    b->message[out.len] = '\0';
    return -EPROTO;
}

static int match_absent_member(struct sql_row_binding *b, const struct duda_sql_result *result,
                               const struct duda_schema_field *m, const struct prefix *prefix)
{
    char buf[NAME_MAX_LEN];
    struct mk_buf name = mk_buf_fixed(buf, sizeof buf);
    mk_buf_addf(&name, "%.*s%s", MK_STR_ARG(prefix->name), m->name);
    if (m->kind == DUDA_KIND_OBJECT && !m->is_list && prefix->depth < DEPTH_MAX &&
        has_columns_of(result, mk_buf_str(&name)))
        return match_nested_struct(b, result, m, prefix, mk_buf_str(&name));
    return m->optional ? 0 : set_match_error(b, "the column", mk_buf_str(&name), "is missing");
}

/* Looks for the column under both names of the member: the one in C, and the one in JSON. */
static int match_member(struct sql_row_binding *b, const struct duda_sql_result *result,
                        const struct duda_schema_field *m, const struct prefix *prefix)
{
    size_t column = find_column(result, b->n, prefix->name, m->name);
    if (column == MK_STR_NONE && m->json_name)
        column = find_column(result, b->n, prefix->name, m->json_name);
    if (column == MK_STR_NONE)
        return match_absent_member(b, result, m, prefix);
    if (b->n == result->n_columns)
        return set_match_error(b, "the column", result->columns[column], "belongs to two members");
    struct sql_column_binding *c = &b->columns[b->n++];
    c->form = column_form_of(m);
    c->column = column;
    c->offset = prefix->base + m->offset;
    c->base = prefix->base;
    c->field = m;
    c->field_size = prefix->schema->field_size;
    return 0;
}

static int match_struct(struct sql_row_binding *b, const struct duda_sql_result *result,
                        const struct prefix *prefix)
{
    const struct duda_schema *schema = prefix->schema;
    int e = 0;
    if (schema->n && !schema->field_size)
        return set_match_error(b, "the schema", mk_str_from_c(schema->name ? schema->name : ""),
                               "has no `.field_size`: use DUDA_SCHEMA()");
    for (size_t i = prefix->n_matched; i < schema->n && !e; i++)
        e = match_member(b, result, duda_schema_field_at(schema, i), prefix);
    return e;
}

/* Does the column have this name? Inline, because this comparison runs for most columns of each result. */
static inline bool is_same_name(mk_str column, const char *name)
{
    for (size_t i = 0; i < column.len; i++)
        if (!name[i] || column.p[i] != name[i])
            return false;
    return !name[column.len];
}

/* Matches the members of the outermost struct as long as the columns are in the same order, as they usually
 * are. Returns the number of these members. */
static size_t match_in_order(struct sql_row_binding *b, const struct duda_sql_result *result,
                             const struct duda_schema *schema)
{
    size_t n = result->n_columns < schema->n ? result->n_columns : schema->n;
    for (; b->n < n; b->n++) {
        const struct duda_schema_field *m = duda_schema_field_at(schema, b->n);
        if (!is_same_name(result->columns[b->n], m->name))
            break;
        b->columns[b->n] = (struct sql_column_binding){.form = column_form_of(m),
                                                       .offset = m->offset,
                                                       .field = m,
                                                       .field_size = schema->field_size,
                                                       .column = b->n};
    }
    return b->n;
}

static bool is_column_bound(const struct sql_row_binding *b, size_t column)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->columns[i].column == column)
            return true;
    return false;
}

/* Two columns with the same name are an error if a member has this name: a join may return the same name
 * twice, and the wrong value would go unnoticed. */
static int check_other_columns(struct sql_row_binding *b, const struct duda_sql_result *result)
{
    for (size_t i = 0; i < result->n_columns && b->n < result->n_columns; i++) {
        if (is_column_bound(b, i))
            continue;
        for (size_t j = 0; j < b->n; j++)
            if (mk_str_eq(result->columns[b->columns[j].column], result->columns[i]))
                return set_match_error(b, "the column", result->columns[i], "occurs more than once");
    }
    return 0;
}

int sql_row_binding_prepare(struct sql_row_binding *b, const struct duda_sql_result *result,
                            const struct duda_schema *schema, const struct mk_allocator *memory)
{
    b->n = 0;
    b->names = result->columns;
    b->memory = memory;
    b->errors = NULL;
    /* Clearing the whole arrays would take as long as matching a column. */
    b->message[0] = b->json_error[0] = '\0';
    b->columns = b->few;
    if (result->n_columns > MK_LEN(b->few))
        b->columns =
            (struct sql_column_binding *)memory->alloc(memory->ctx, result->n_columns * sizeof *b->columns);
    if (!b->columns)
        return -ENOMEM;
    size_t n = schema->field_size ? match_in_order(b, result, schema) : 0;
    int e = n == schema->n ? 0 : match_struct(b, result, &(struct prefix){.schema = schema, .n_matched = n});
    return e ? e : check_other_columns(b, result);
}

/* ---- Conversions ---- */

/* Why a value cannot be stored; NULL: it was stored. */
typedef const char *reason;

static const char out_of_memory[] = "out of memory", wrong_type[] = "has a value of another type";

static reason store_integer(const struct duda_schema_field *m, void *at, bool is_negative, uint64_t amount)
{
    return duda_schema_field_set_integer(m, at, is_negative, amount)
               ? NULL
               : "has a number that does not fit into the member";
}

/* Returns the text without a fraction of zeros. */
static mk_str trim_zero_fraction(mk_str text)
{
    size_t point = mk_str_find(text, '.');
    for (size_t i = point; point != MK_STR_NONE && ++i < text.len;)
        if (text.p[i] != '0')
            return text;
    return mk_str_first(text, point == MK_STR_NONE ? text.len : point);
}

/* The databases return NUMERIC values as text. */
static reason store_integer_text(const struct duda_schema_field *m, void *at, mk_str text)
{
    bool is_negative = text.len && text.p[0] == '-';
    uint64_t amount;
    text = trim_zero_fraction(text);
    if (!mk_num_parse(mk_str_skip(text, is_negative), &amount))
        return "has a text that is not an integer";
    return store_integer(m, at, is_negative, amount);
}

static reason store_as_integer(const struct duda_schema_field *m, void *at, const struct duda_sql_value *v)
{
    if (v->type == DUDA_SQL_INTEGER)
        return store_integer(m, at, v->number < 0,
                             v->number < 0 ? ~(uint64_t)v->number + 1 : (uint64_t)v->number);
    if (v->type == DUDA_SQL_TEXT)
        return store_integer_text(m, at, v->text);
    if (v->type != DUDA_SQL_REAL)
        return wrong_type;
    if (!(fabs(v->real) < 0x1p63) || trunc(v->real) != v->real)
        return "has a number that is not an integer";
    return store_integer(m, at, v->real < 0, (uint64_t)fabs(v->real));
}

static reason store_as_double(void *at, const struct duda_sql_value *v)
{
    double number = v->real;
    if (v->type == DUDA_SQL_INTEGER)
        number = (double)v->number;
    else if (v->type == DUDA_SQL_TEXT && !mk_num_parse_double(v->text, &number))
        return "has a text that is not a number";
    else if (v->type == DUDA_SQL_BLOB)
        return wrong_type;
    memcpy(at, &number, sizeof number);
    return NULL;
}

static reason store_as_bool(void *at, const struct duda_sql_value *v)
{
    bool truth = v->number;
    if (v->type != DUDA_SQL_INTEGER || (v->number != 0 && v->number != 1))
        return "has a value that is neither true nor false";
    memcpy(at, &truth, sizeof truth);
    return NULL;
}

static reason store_as_text(void *at, const struct duda_sql_value *v, bool accepts_bytes)
{
    if (v->type != DUDA_SQL_TEXT && !(accepts_bytes && v->type == DUDA_SQL_BLOB))
        return wrong_type;
    memcpy(at, &v->text, sizeof v->text);
    return NULL;
}

static reason store_as_enum(const struct duda_schema_field *m, void *at, const struct duda_sql_value *v)
{
    uint64_t i = 0;
    for (; m->values[i]; i++)
        if (v->type == DUDA_SQL_TEXT ? mk_str_eq(v->text, mk_str_from_c(m->values[i]))
                                     : v->type == DUDA_SQL_INTEGER && v->number == (int64_t)i)
            return store_integer(m, at, false, i);
    return "has a value that the enum does not have";
}

/* ---- Times ---- */

static size_t find_zone(mk_str time)
{
    size_t at = 0;
    while (at < time.len && time.p[at] != '+' && time.p[at] != '-' && time.p[at] != 'Z')
        at++;
    return at;
}

/* Parses the date and time formats of databases: like RFC 3339, but with a space or a T, and possibly without
 * a time or a time zone, which is then UTC. */
static bool parse_timestamp(mk_str text, int64_t *out)
{
    char buf[64];
    struct mk_buf full = mk_buf_fixed(buf, sizeof buf);
    mk_str time = mk_str_skip(text, 11), zone = mk_str_skip(time, find_zone(time));
    time = mk_str_first(time, time.len - zone.len);
    if (text.len > 10 && text.p[10] != ' ' && text.p[10] != 'T')
        return false;
    mk_buf_addf(&full, "%.*sT%.*s", MK_STR_ARG(mk_str_first(text, 10)), MK_STR_ARG(time));
    if (text.len <= 11)
        mk_buf_add(&full, text.len == 10 ? MK_STR("00:00:00") : MK_STR("?"));
    else if (time.len == 5) /* SQLite's functions accept times without seconds */
        mk_buf_add(&full, MK_STR(":00"));
    mk_buf_add(&full, zone.len ? zone : MK_STR("Z"));
    if (zone.len == 3) /* PostgreSQL writes `+02` */
        mk_buf_add(&full, MK_STR(":00"));
    return !full.failed && duda_timestamp_parse(mk_buf_str(&full), out);
}

/* SQLite's functions interpret integers as seconds since 1970. */
static reason store_as_timestamp(void *at, const struct duda_sql_value *v)
{
    int64_t time;
    if (v->type == DUDA_SQL_INTEGER) {
        if (__builtin_mul_overflow(v->number, SECOND_US, &time))
            return "has a number that is not a time";
    } else if (v->type != DUDA_SQL_TEXT) {
        return wrong_type;
    } else if (!parse_timestamp(v->text, &time)) {
        return "has a text that is not a date and time";
    }
    memcpy(at, &time, sizeof time);
    return NULL;
}

/* ---- JSON and arrays ---- */

static enum sql_array_elements array_elements_of(const struct duda_schema_field *m)
{
    return m->kind == DUDA_KIND_BOOL                                     ? SQL_ARRAY_OF_BOOLS
           : m->kind == DUDA_KIND_INTEGER || m->kind == DUDA_KIND_DOUBLE ? SQL_ARRAY_OF_NUMBERS
                                                                         : SQL_ARRAY_OF_STRINGS;
}

/* Writes an object with only this member, as input of duda_json_read(). */
static bool write_as_object(struct mk_buf *out, const struct duda_schema_field *m, mk_str text)
{
    bool is_array = m->is_list && !m->is_map && text.len && text.p[0] == '{';
    mk_buf_addf(out, "{\"%s\":", m->name);
    if (is_array && !sql_array_to_json(out, text, array_elements_of(m)))
        return false;
    if (!is_array)
        mk_buf_add(out, text);
    mk_buf_add_char(out, '}');
    return true;
}

static reason read_json(struct sql_row_binding *b, const struct sql_column_binding *c, mk_str json,
                        char *base)
{
    static const struct mk_json_limits limits = {.size = JSON_MAX, .items = JSON_MAX};
    struct duda_schema_field field;
    if (!b->errors) /* too large for the stack of a handler */
        b->errors = (struct duda_validation_errors *)mk_allocator_zalloc(b->memory, 1, sizeof *b->errors);
    if (!b->errors)
        return out_of_memory;
    memset(&field, 0, sizeof field);
    memcpy(&field, c->field, c->field_size < sizeof field ? c->field_size : sizeof field);
    field.json_name = NULL;
    const struct duda_schema schema = {
        .fields = &field, .n = 1, .field_size = sizeof field, .schema_size = sizeof schema};
    int e = duda_json_read(json, &schema, b->memory, &limits, base, b->errors);
    if (!e || e == -ENOMEM)
        return e ? out_of_memory : NULL;
    struct mk_buf text = mk_buf_fixed(b->json_error, sizeof b->json_error - 1);
    mk_buf_addf(&text, "has unsuitable JSON: %.*s", MK_STR_ARG(b->errors->items[0].message));
    b->json_error[text.len] = '\0';
    return b->json_error;
}

static reason store_as_json(struct sql_row_binding *b, const struct sql_column_binding *c,
                            const struct duda_sql_value *v, char *base)
{
    struct mk_buf json = mk_buf_growing(JSON_MAX);
    if (v->type != DUDA_SQL_TEXT)
        return wrong_type;
    if (!write_as_object(&json, c->field, v->text)) {
        mk_buf_free(&json);
        return "has a text that is not an array";
    }
    mk_str copy = json.failed ? MK_STR_NULL : mk_allocator_copy(b->memory, mk_buf_str(&json));
    mk_buf_free(&json);
    return copy.p ? read_json(b, c, copy, base) : out_of_memory;
}

/* ---- Rows ---- */

static reason store_value(struct sql_row_binding *b, const struct sql_column_binding *c,
                          const struct duda_sql_value *v, char *out)
{
    const struct duda_schema_field *m = c->field;
    void *at = out + c->offset;
    if (v->type == DUDA_SQL_NULL) {
        duda_schema_field_set_present(m, out + c->base, false);
        return m->optional ? NULL : "is NULL, but the member is not optional";
    }
    duda_schema_field_set_present(m, out + c->base, true);
    if (m->is_list)
        return store_as_json(b, c, v, out + c->base);
    switch (m->kind) {
    case DUDA_KIND_BOOL:
        return store_as_bool(at, v);
    case DUDA_KIND_INTEGER:
        return store_as_integer(m, at, v);
    case DUDA_KIND_DOUBLE:
        return store_as_double(at, v);
    case DUDA_KIND_STRING:
    case DUDA_KIND_JSON_RAW:
        return store_as_text(at, v, false);
    case DUDA_KIND_BYTES:
        return store_as_text(at, v, true);
    case DUDA_KIND_ENUM:
        return store_as_enum(m, at, v);
    case DUDA_KIND_TIMESTAMP:
        return store_as_timestamp(at, v);
    case DUDA_KIND_OBJECT:
        return store_as_json(b, c, v, out + c->base);
    }
    return "is for a member of an unknown type";
}

/* The values of one column and the members that receive them, n of each. `n_columns` is the distance between
 * two values, and struct_size that between two members. */
struct column_walk {
    const struct duda_sql_value *value;
    char *member;
    size_t n_columns, struct_size, n;
};

/* Returns false if the value needs store_value(). */
static inline bool store_plain_value(enum sql_column_form form, const struct duda_sql_value *v, char *at)
{
    bool is_plain = v->type == (form == SQL_COLUMN_DOUBLE ? DUDA_SQL_REAL
                                : form == SQL_COLUMN_TEXT ? DUDA_SQL_TEXT
                                                          : DUDA_SQL_INTEGER);
    int32_t small = (int32_t)v->number;
    if (!is_plain || (form == SQL_COLUMN_INT32 && small != v->number) ||
        (form == SQL_COLUMN_BOOL && (uint64_t)v->number > 1))
        return false;
    if (form == SQL_COLUMN_INT32)
        memcpy(at, &small, sizeof small);
    else if (form == SQL_COLUMN_BOOL)
        *at = (char)v->number;
    else if (form == SQL_COLUMN_TEXT)
        memcpy(at, &v->text, sizeof v->text);
    else if (form == SQL_COLUMN_DOUBLE)
        memcpy(at, &v->real, sizeof v->real);
    else
        memcpy(at, &v->number, sizeof v->number);
    return true;
}

/* Stores values from index i on, as long as they have the type that the member expects. Returns the index of
 * the first other value, or w.n. `form` is a constant, so the compiler creates a loop for each form. */
__attribute__((always_inline)) static inline size_t walk_column(struct column_walk w, size_t i,
                                                                enum sql_column_form form)
{
    const struct duda_sql_value *v = w.value + i * w.n_columns;
    char *at = w.member + i * w.struct_size;
    while (i < w.n && store_plain_value(form, v, at)) {
        i++;
        v += w.n_columns;
        at += w.struct_size;
    }
    return i;
}

static size_t store_plain_values(const struct column_walk *w, size_t i, enum sql_column_form form)
{
    switch (form) {
    case SQL_COLUMN_INT64:
        return walk_column(*w, i, SQL_COLUMN_INT64);
    case SQL_COLUMN_INT32:
        return walk_column(*w, i, SQL_COLUMN_INT32);
    case SQL_COLUMN_DOUBLE:
        return walk_column(*w, i, SQL_COLUMN_DOUBLE);
    case SQL_COLUMN_BOOL:
        return walk_column(*w, i, SQL_COLUMN_BOOL);
    case SQL_COLUMN_TEXT:
        return walk_column(*w, i, SQL_COLUMN_TEXT);
    case SQL_COLUMN_OTHER:
        break;
    }
    return i;
}

/* Stores the values of one row from binding `i` on, until a value needs store_value(). Returns the index of
 * its binding, or b->n. */
static size_t store_plain_row(const struct sql_row_binding *b, size_t i, const struct duda_sql_value *row,
                              char *out)
{
    for (; i < b->n; i++) {
        const struct sql_column_binding *c = &b->columns[i];
        if (c->form == SQL_COLUMN_OTHER || !store_plain_value(c->form, row + c->column, out + c->offset))
            break;
    }
    return i;
}

static int set_value_error(struct sql_row_binding *b, size_t row, const struct sql_column_binding *c,
                           reason why)
{
    struct mk_buf text = mk_buf_fixed(b->message, sizeof b->message - 1);
    mk_buf_addf(&text, "row %zu: the column `%.*s` %s", row + 1, MK_STR_ARG(b->names[c->column]), why);
    b->message[text.len] = '\0';
    return why == out_of_memory ? -ENOMEM : -EPROTO;
}

static int store_row(struct sql_row_binding *b, const struct duda_sql_value *row, size_t number, char *out)
{
    for (size_t i = 0; (i = store_plain_row(b, i, row, out)) < b->n; i++) {
        const struct sql_column_binding *c = &b->columns[i];
        reason why = store_value(b, c, row + c->column, out);
        if (why)
            return set_value_error(b, number, c, why);
    }
    return 0;
}

/* Works column by column, which takes half the instructions of a walk by rows: the form of a column is looked
 * up once. */
int sql_row_binding_store(struct sql_row_binding *b, const struct duda_sql_result *result, size_t first,
                          size_t n, size_t struct_size, void *out)
{
    const struct duda_sql_value *row = duda_sql_cell(result, first, 0);
    if (n == 1)
        return store_row(b, row, first, (char *)out);
    for (size_t i = 0; i < b->n; i++) {
        const struct sql_column_binding *c = &b->columns[i];
        const struct column_walk w = {.value = row + c->column,
                                      .member = (char *)out + c->offset,
                                      .n_columns = result->n_columns,
                                      .struct_size = struct_size,
                                      .n = n};
        for (size_t k = 0; (k = store_plain_values(&w, k, c->form)) < n; k++) {
            reason why = store_value(b, c, w.value + k * w.n_columns, (char *)out + k * struct_size);
            if (why)
                return set_value_error(b, first + k, c, why);
        }
    }
    return 0;
}
