/* SPDX-License-Identifier: Apache-2.0 */
#include "doc/json_schema.h"

enum { DEPTH_MAX = 8, NAME_MAX_ = 64 };

/* Begins a schema with this type; the caller ends the object. */
static void begin_type_schema(struct mk_json_writer *w, const char *type)
{
    mk_json_begin_object(w);
    mk_json_cstr(mk_json_key(w, "type"), type);
}

void dev_json_schema_write_param_type(struct mk_json_writer *w, mk_str type)
{
    static const struct {
        const char *word, *type, *key, *value;
    } types[] = {
        {"int", "integer", "format", "int64"},
        {"uint", "integer", NULL, NULL},
        {"number", "number", NULL, NULL},
        {"uuid", "string", "format", "uuid"},
        {"date", "string", "format", "date"},
        {"hex", "string", "pattern", "^[0-9A-Fa-f]+$"},
        {"alpha", "string", "pattern", "^[A-Za-z]+$"},
        {"word", "string", "pattern", "^[A-Za-z0-9_]+$"},
        {"slug", "string", "pattern", "^[A-Za-z0-9_-]+$"},
        {"rest", "string", "description", "the rest of the path, including slashes"},
        {"", "string", NULL, NULL},
    };
    size_t i = 0;
    while (i < MK_LEN(types) - 1 && !mk_str_eq(type, mk_str_from_c(types[i].word)))
        i++;
    begin_type_schema(w, types[i].type);
    if (types[i].key)
        mk_json_cstr(mk_json_key(w, types[i].key), types[i].value);
    if (mk_str_eq(type, MK_STR("uint")))
        mk_json_uint(mk_json_key(w, "minimum"), 0);
    mk_json_end_object(w);
}

static void write_number_range(struct mk_json_writer *w, const struct duda_schema_field *m)
{
    bool is_unsigned = m->kind == DUDA_KIND_INTEGER && !m->is_signed;
    if (m->at_least.is_set && !(is_unsigned && m->at_least.value < 0))
        mk_json_double(mk_json_key(w, "minimum"), m->at_least.value);
    else if (is_unsigned)
        mk_json_uint(mk_json_key(w, "minimum"), 0);
    if (m->at_most.is_set)
        mk_json_double(mk_json_key(w, "maximum"), m->at_most.value);
}

static void write_limit(struct mk_json_writer *w, const char *key, size_t limit)
{
    if (limit)
        mk_json_uint(mk_json_key(w, key), limit);
}

static void write_enum_values(struct mk_json_writer *w, const char *const *values)
{
    mk_json_begin_array(mk_json_key(w, "enum"));
    for (size_t i = 0; values && values[i]; i++)
        mk_json_cstr(w, values[i]);
    mk_json_end_array(w);
}

struct schema_writer {
    struct mk_json_writer *json;
    struct dev_json_schemas *named; /* NULL: writes all schemas inline */
    bool is_request;                /* of a JSON request body: optional members may be null */
};

/* Writes the schema that accepts any value. */
static void write_any_schema(struct mk_json_writer *w)
{
    mk_json_begin_object(w);
    mk_json_end_object(w);
}

static void write_schema(const struct schema_writer *w, const struct duda_schema *schema, unsigned depth);

static void write_integer_schema(struct mk_json_writer *w, const struct duda_schema_field *m)
{
    begin_type_schema(w, "integer");
    if (m->is_signed && (m->size == 4 || m->size == 8))
        mk_json_cstr(mk_json_key(w, "format"), m->size == 4 ? "int32" : "int64");
    write_number_range(w, m);
    mk_json_end_object(w);
}

static void write_string_schema(struct mk_json_writer *w, const struct duda_schema_field *m)
{
    bool is_timestamp = m->kind == DUDA_KIND_TIMESTAMP;
    const char *format = duda_format_name(is_timestamp ? DUDA_FORMAT_DATE_TIME : m->format);
    begin_type_schema(w, "string");
    if (m->kind == DUDA_KIND_ENUM)
        write_enum_values(w, m->values);
    if (m->kind == DUDA_KIND_BYTES)
        mk_json_cstr(mk_json_key(w, "contentEncoding"), "base64");
    if (format)
        mk_json_cstr(mk_json_key(w, "format"), format);
    if (m->pattern)
        mk_json_cstr(mk_json_key(w, "pattern"), m->pattern);
    if (m->kind == DUDA_KIND_STRING && !m->is_list) {
        write_limit(w, "minLength", m->min_length);
        write_limit(w, "maxLength", m->max_length);
    }
    mk_json_end_object(w);
}

static void write_field_type(const struct schema_writer *w, const struct duda_schema_field *m, unsigned depth)
{
    struct mk_json_writer *json = w->json;
    switch (m->kind) {
    case DUDA_KIND_BOOL:
        begin_type_schema(json, "boolean");
        mk_json_end_object(json);
        break;
    case DUDA_KIND_INTEGER:
        write_integer_schema(json, m);
        break;
    case DUDA_KIND_DOUBLE:
        begin_type_schema(json, "number");
        write_number_range(json, m);
        mk_json_end_object(json);
        break;
    case DUDA_KIND_STRING:
    case DUDA_KIND_ENUM:
    case DUDA_KIND_BYTES:
    case DUDA_KIND_TIMESTAMP:
        write_string_schema(json, m);
        break;
    case DUDA_KIND_OBJECT:
        write_schema(w, m->schema, depth + 1);
        break;
    case DUDA_KIND_JSON_RAW:
    default:
        write_any_schema(json);
        break;
    }
}

static void write_field_schema(const struct schema_writer *w, const struct duda_schema_field *m,
                               unsigned depth);

/* The two members of the schema of a map describe the names and the values. */
static void write_map_schema(const struct schema_writer *w, const struct duda_schema_field *m, unsigned depth)
{
    begin_type_schema(w->json, "object");
    if (depth <= DEPTH_MAX && m->schema && m->schema->n == 2) {
        mk_json_key(w->json, "propertyNames");
        write_string_schema(w->json, duda_schema_field_at(m->schema, 0));
        mk_json_key(w->json, "additionalProperties");
        write_field_schema(w, duda_schema_field_at(m->schema, 1), depth + 1);
    }
    write_limit(w->json, "minProperties", m->min_length);
    write_limit(w->json, "maxProperties", m->max_length);
    mk_json_end_object(w->json);
}

static void write_field_schema(const struct schema_writer *w, const struct duda_schema_field *m,
                               unsigned depth)
{
    if (!m->is_list) {
        write_field_type(w, m, depth);
        return;
    }
    if (m->is_map) {
        write_map_schema(w, m, depth);
        return;
    }
    begin_type_schema(w->json, "array");
    mk_json_key(w->json, "items");
    write_field_type(w, m, depth);
    write_limit(w->json, "minItems", m->min_length);
    write_limit(w->json, "maxItems", m->max_length);
    if (m->is_unique)
        mk_json_bool(mk_json_key(w->json, "uniqueItems"), true);
    mk_json_end_object(w->json);
}

/* Writes a member of an object. */
static void write_member_schema(const struct schema_writer *w, const struct duda_schema_field *m,
                                unsigned depth)
{
    bool is_nullable =
        w->is_request && m->optional && m->kind != DUDA_KIND_JSON_RAW; /* raw JSON may be null */
    if (!is_nullable) {
        write_field_schema(w, m, depth);
        return;
    }
    mk_json_begin_object(w->json);
    mk_json_begin_array(mk_json_key(w->json, "anyOf"));
    write_field_schema(w, m, depth);
    begin_type_schema(w->json, "null");
    mk_json_end_object(w->json);
    mk_json_end_array(w->json);
    mk_json_end_object(w->json);
}

/* ---- Files of a multipart form ---- */

struct file_part {
    mk_str name;
    bool is_optional, is_list;
};

static bool strip_end(mk_str *text, mk_str end)
{
    bool has = text->len > end.len && mk_str_ends(*text, end);
    if (has)
        text->len -= end.len;
    return has;
}

/* Takes the next word off the list: "photo", "photo?" or "photos[]". */
static bool next_file_part(mk_str *files, struct file_part *part)
{
    *part = (struct file_part){.name = mk_str_word(files)};
    part->is_optional = strip_end(&part->name, MK_STR("?"));
    mk_str base = part->name;
    part->is_list = strip_end(&base, MK_STR("[]")); /* the name includes the brackets */
    return part->name.len > 0;
}

/* `format: binary` belongs to OpenAPI 3.0, but many generators rely on it. */
static void write_file_schema(struct mk_json_writer *w)
{
    begin_type_schema(w, "string");
    mk_json_cstr(mk_json_key(w, "format"), "binary");
    mk_json_cstr(mk_json_key(w, "contentMediaType"), "application/octet-stream");
    mk_json_end_object(w);
}

static void write_file_properties(struct mk_json_writer *w, mk_str files)
{
    struct file_part part;
    while (next_file_part(&files, &part)) {
        mk_json_key_str(w, part.name);
        if (part.is_list) {
            begin_type_schema(w, "array");
            mk_json_key(w, "items");
        }
        write_file_schema(w);
        if (part.is_list)
            mk_json_end_object(w);
    }
}

/* ---- Objects ---- */

static void write_required_name(struct mk_json_writer *w, size_t *n, mk_str name)
{
    if ((*n)++ == 0)
        mk_json_begin_array(mk_json_key(w, "required"));
    mk_json_string(w, name);
}

static void write_required_names(struct mk_json_writer *w, const struct duda_schema *schema, mk_str files)
{
    struct file_part part;
    size_t n = 0;
    for (size_t i = 0; schema && i < schema->n; i++)
        if (!duda_schema_field_at(schema, i)->optional)
            write_required_name(w, &n,
                                mk_str_from_c(duda_schema_field_name(duda_schema_field_at(schema, i))));
    while (next_file_part(&files, &part))
        if (!part.is_optional)
            write_required_name(w, &n, part.name);
    if (n)
        mk_json_end_array(w);
}

/* ---- Names ---- */

/* Copies the name with only those characters that OpenAPI allows: "struct line_item" becomes "line_item". */
static size_t copy_type_name(char buf[NAME_MAX_], const char *type)
{
    size_t n = 0;
    mk_str rest = mk_str_from_c(type);
    if (mk_str_starts(rest, MK_STR("struct ")))
        rest = mk_str_skip(rest, 7);
    for (size_t i = 0; i < rest.len && n < NAME_MAX_ - 1; i++)
        if (mk_char_is_alpha(rest.p[i]) || mk_char_is_digit(rest.p[i]) || rest.p[i] == '_')
            buf[n++] = rest.p[i];
    buf[n] = '\0';
    return n;
}

/* Appends the name of the schema, with a number if several schemas describe the same type. */
static void append_schema_name(struct mk_buf *out, const struct dev_json_schemas *named, size_t at)
{
    char own[NAME_MAX_], other[NAME_MAX_];
    size_t before = 0;
    (void)copy_type_name(own, named->at[at]->name);
    before += mk_str_eq(mk_str_from_c(own), MK_STR("Problem")); /* the name of problem details (RFC 9457) */
    for (size_t i = 0; i < at; i++) {
        (void)copy_type_name(other, named->at[i]->name);
        before += mk_str_eq(mk_str_from_c(own), mk_str_from_c(other));
    }
    mk_buf_add(out, mk_str_from_c(own));
    if (before)
        mk_buf_addf(out, "_%zu", before + 1);
}

static size_t find_named_schema(const struct dev_json_schemas *named, const struct duda_schema *schema)
{
    size_t i = 0;
    while (i < named->n && named->at[i] != schema)
        i++;
    return i;
}

/* Returns the index of the schema, which is added if it is new; DEV_JSON_SCHEMAS_MAX: it has no name, or there are too many. */
static size_t add_named_schema(struct dev_json_schemas *named, const struct duda_schema *schema)
{
    char buf[NAME_MAX_];
    if (!named || !schema->name || copy_type_name(buf, schema->name) == 0)
        return DEV_JSON_SCHEMAS_MAX;
    size_t i = find_named_schema(named, schema);
    if (i == named->n && i < DEV_JSON_SCHEMAS_MAX)
        named->at[named->n++] = schema;
    return i;
}

/* Marks the schema and all schemas that it contains, before any of them is written. */
static void mark_as_request(struct dev_json_schemas *named, const struct duda_schema *schema, unsigned depth)
{
    size_t i = add_named_schema(named, schema);
    if (depth > DEPTH_MAX || (i < DEV_JSON_SCHEMAS_MAX && named->is_in_request[i]))
        return;
    if (i < DEV_JSON_SCHEMAS_MAX) {
        named->is_in_request[i] = true;
        depth = 0;
    }
    for (size_t k = 0; k < schema->n; k++)
        if (duda_schema_field_at(schema, k)->schema)
            mark_as_request(named, duda_schema_field_at(schema, k)->schema, depth + 1);
}

/* Writes a reference to a named schema. Returns false if the schema has no name. */
static bool write_reference(const struct schema_writer *w, const struct duda_schema *schema)
{
    struct dev_json_schemas *named = w->named;
    struct mk_json_writer *json = w->json;
    size_t i = add_named_schema(named, schema);
    if (i == DEV_JSON_SCHEMAS_MAX)
        return false;
    if (w->is_request)
        mark_as_request(named, schema, 0);
    mk_json_begin_object(json);
    mk_json_begin_string(mk_json_key(json, "$ref"));
    mk_buf_add(json->out, MK_STR("#/components/schemas/"));
    append_schema_name(json->out, named, i);
    mk_json_end_string(json);
    mk_json_end_object(json);
    return true;
}

/* Writes an object with the fields of the schema, which may be NULL, and the files of a form. */
static void write_object_schema(const struct schema_writer *w, const struct duda_schema *schema, mk_str files,
                                unsigned depth)
{
    begin_type_schema(w->json, "object");
    mk_json_begin_object(mk_json_key(w->json, "properties"));
    for (size_t i = 0; schema && i < schema->n; i++) {
        mk_json_key(w->json, duda_schema_field_name(duda_schema_field_at(schema, i)));
        write_member_schema(w, duda_schema_field_at(schema, i), depth);
    }
    write_file_properties(w->json, files);
    mk_json_end_object(w->json);
    write_required_names(w->json, schema, files);
    if (schema && !schema->allow_unknown)
        mk_json_bool(mk_json_key(w->json, "additionalProperties"), false);
    mk_json_end_object(w->json);
}

static void write_schema(const struct schema_writer *w, const struct duda_schema *schema, unsigned depth)
{
    if (!schema || depth > DEPTH_MAX)
        write_any_schema(w->json);
    else if (!write_reference(w, schema))
        write_object_schema(w, schema, MK_STR(""), depth);
}

void dev_json_schema_write_field(struct mk_json_writer *w, const struct duda_schema_field *m)
{
    write_field_schema(&(struct schema_writer){.json = w}, m, 0);
}

static void write_body_schema(const struct schema_writer *w, const struct duda_schema *schema, bool is_list)
{
    if (is_list) {
        begin_type_schema(w->json, "array");
        mk_json_key(w->json, "items");
    }
    write_schema(w, schema, 0);
    if (is_list)
        mk_json_end_object(w->json);
}

void dev_json_schema_write(struct mk_json_writer *w, struct dev_json_schemas *named,
                           const struct duda_schema *schema, bool is_list)
{
    write_body_schema(&(struct schema_writer){.json = w, .named = named}, schema, is_list);
}

void dev_json_schema_write_request(struct mk_json_writer *w, struct dev_json_schemas *named,
                                   const struct duda_schema *schema, bool is_list)
{
    write_body_schema(&(struct schema_writer){.json = w, .named = named, .is_request = true}, schema,
                      is_list);
}

void dev_json_schema_write_patch(struct mk_json_writer *w, struct dev_json_schemas *named,
                                 const struct duda_schema *schema)
{
    const struct schema_writer writer = {.json = w, .named = named, .is_request = true};
    begin_type_schema(w, "object");
    mk_json_begin_object(mk_json_key(w, "properties"));
    for (size_t i = 0; i < schema->n; i++) {
        mk_json_key(w, duda_schema_field_name(duda_schema_field_at(schema, i)));
        write_member_schema(&writer, duda_schema_field_at(schema, i), 0);
    }
    mk_json_end_object(w);
    if (!schema->allow_unknown)
        mk_json_bool(mk_json_key(w, "additionalProperties"), false);
    mk_json_end_object(w);
}

void dev_json_schema_write_multipart(struct mk_json_writer *w, struct dev_json_schemas *named,
                                     const struct duda_schema *form, const char *files)
{
    write_object_schema(&(struct schema_writer){.json = w, .named = named}, form, mk_str_from_c(files), 0);
}

void dev_json_schema_write_components(struct mk_json_writer *w, struct dev_json_schemas *named)
{
    for (size_t i = 0; i < named->n; i++) { /* their fields may add further schemas */
        char buf[NAME_MAX_ + 24];
        struct mk_buf name = mk_buf_fixed(buf, sizeof buf);
        append_schema_name(&name, named, i);
        mk_json_newline(w);
        mk_json_key_str(w, mk_buf_str(&name));
        const struct schema_writer writer = {
            .json = w, .named = named, .is_request = named->is_in_request[i]};
        write_object_schema(&writer, named->at[i], MK_STR(""), 0);
    }
}
