/* SPDX-License-Identifier: Apache-2.0 */
/* Formats values as JSON. Structs in lists, the most common responses, take a faster path: their keys are
 * formatted once for the whole list, and members are copied into the buffer without a struct duda_value or a
 * call for each of them. */
#include <duda/json.h>
#include <monkey/json.h>

#include "text/schema_field.h"

/* Limits of the structs that one output prepares. A struct that exceeds them takes the general path. */
enum { STRUCTS_MAX = 6, MEMBERS_MAX = 32, KEYS_MAX = 448 };
/* A key is copied in blocks of BLOCK bytes; a scalar value has at most VALUE_MAX bytes. */
enum { BLOCK = 16, VALUE_MAX = 24 };

/* The forms of members. The fast path writes all but FORM_OTHER, if they are present. */
enum member_form { FORM_OTHER, FORM_INTEGER, FORM_BOOL, FORM_STRING, FORM_STRINGS, FORM_OBJECT };

/* A member of a struct with its formatted key, `,"name":`. */
struct prepared_member {
    const struct duda_schema_field *field;
    const struct prepared_struct *object; /* the struct of a DUDA_KIND_OBJECT; NULL: not prepared */
    size_t offset;                        /* of the member in the struct */
    uint16_t key, key_len;                /* position in `keys` */
    enum member_form form;
};

struct prepared_struct {
    const struct duda_schema *schema;
    size_t first, n; /* in `members` */
    size_t space;    /* for all keys, and all values except strings, lists and objects */
};

/* The output of one value: a writer, and the structs that have been prepared so far. */
struct json_output {
    struct mk_json_writer w;
    bool needs_exact_space; /* the fast path reserves more space than it needs, and the buffer has less */
    size_t n_structs, n_members, keys_len;
    struct prepared_struct structs[STRUCTS_MAX];
    struct prepared_member members[MEMBERS_MAX];
    char keys[KEYS_MAX + BLOCK];
};

static void write_value(struct json_output *o, const struct duda_value *v, size_t depth);

/* ---- Space ----
 * The fast path writes through a pointer to the end of the output, and stores the length only before other
 * functions write to the buffer. NULL means that the buffer has failed. */

static char *output_grow(struct json_output *o, const char *at, size_t n)
{
    struct mk_buf *out = o->w.out;
    if (at)
        out->len = (size_t)(at - out->p);
    return at && mk_buf_reserve(out, n) ? out->p + out->len : NULL;
}

/* Returns `at`, with space for n bytes; its new address if the buffer has moved. */
static inline char *output_reserve(struct json_output *o, char *at, size_t n)
{
    const struct mk_buf *out = o->w.out;
    return at && out->cap - (size_t)(at - out->p) >= n ? at : output_grow(o, at, n);
}

/* Begins a part that the fast path writes. */
static inline char *output_begin(struct json_output *o, size_t n)
{
    struct mk_buf *out = o->w.out;
    return mk_buf_reserve(out, n) ? out->p + out->len : NULL;
}

/* ---- Copies of strings and numbers ---- */

typedef signed char byte_block __attribute__((vector_size(BLOCK)));
typedef uint64_t word_block __attribute__((vector_size(BLOCK)));

/* Returns whether a JSON string may contain all these bytes as they are: no control character, quote,
 * backslash, or byte of a longer UTF-8 sequence, which is negative here. */
static inline bool block_is_plain(byte_block b)
{
    word_block special = (word_block)((b < 0x20) | (b == '"') | (b == '\\') | (b == 0x7f));
    return (special[0] | special[1]) == 0;
}

static inline bool words_are_plain(uint64_t first, uint64_t last)
{
    return block_is_plain((byte_block)(word_block){first, last});
}

static inline bool copy_long_if_plain(char *to, mk_str s)
{
    byte_block block;
    for (size_t n = 0; n < s.len - BLOCK; n += BLOCK) {
        memcpy(&block, s.p + n, BLOCK);
        memcpy(to + n, &block, BLOCK);
        if (!block_is_plain(block))
            return false;
    }
    memcpy(&block, s.p + s.len - BLOCK, BLOCK);
    memcpy(to + s.len - BLOCK, &block, BLOCK);
    return block_is_plain(block);
}

/* Copies up to seven bytes; from four bytes on, as two words that may overlap. */
static inline bool copy_short_if_plain(char *to, mk_str s)
{
    const uint64_t spaces = UINT64_C(0x2020202020202020);
    uint32_t first, last;
    if (s.len < sizeof first) {
        uint64_t word = spaces;
        for (size_t i = 0; i < s.len; i++) {
            to[i] = s.p[i];
            word = word << 8 | (unsigned char)s.p[i];
        }
        return words_are_plain(word, spaces);
    }
    memcpy(&first, s.p, sizeof first);
    memcpy(&last, s.p + s.len - sizeof last, sizeof last);
    memcpy(to, &first, sizeof first);
    memcpy(to + s.len - sizeof last, &last, sizeof last);
    return words_are_plain((uint64_t)last << 32 | first, spaces);
}

/* Copies a string. Returns false, with a part of it copied, if it contains a character that may need an
 * escape. */
static inline bool copy_if_plain(char *to, mk_str s)
{
    uint64_t first, last;
    if (s.len >= BLOCK)
        return copy_long_if_plain(to, s);
    if (s.len < sizeof first)
        return copy_short_if_plain(to, s);
    memcpy(&first, s.p, sizeof first);
    memcpy(&last, s.p + s.len - sizeof last, sizeof last);
    memcpy(to, &first, sizeof first);
    memcpy(to + s.len - sizeof last, &last, sizeof last);
    return words_are_plain(first, last);
}

/* Writes VALUE_MAX bytes, of which the digits are the first ones. Returns the end of the digits. */
static inline char *copy_digits(char *at, uint64_t n)
{
    static const char pairs[] = "0001020304050607080910111213141516171819202122232425262728293031323334"
                                "3536373839404142434445464748495051525354555657585960616263646566676869"
                                "707172737475767778798081828384858687888990919293949596979899";
    char text[2 * VALUE_MAX], *from = text + VALUE_MAX;
    for (; n >= 100; n /= 100) {
        from -= 2;
        memcpy(from, pairs + n % 100 * 2, 2);
    }
    from -= 2;
    memcpy(from, pairs + n * 2, 2);
    from += n < 10;
    memcpy(at, from, VALUE_MAX); /* later output overwrites the bytes after the digits */
    return at + (text + VALUE_MAX - from);
}

static inline char *copy_integer(char *at, struct duda_integer n)
{
    *at = '-';
    return copy_digits(at + n.is_negative, n.amount);
}

static inline char *copy_bool(char *at, bool b)
{
    memcpy(at, b ? "true\0" : "false", 5);
    return at + (b ? 4 : 5);
}

/* `skip` is 1 to omit the comma. */
static inline char *copy_key(char *at, const struct json_output *o, const struct prepared_member *member,
                             size_t skip)
{
    const char *key = o->keys + member->key + skip;
    size_t len = member->key_len - skip;
    memcpy(at, key, BLOCK);
    if (len > BLOCK)
        memcpy(at + BLOCK, key + BLOCK, len - BLOCK);
    return at + len;
}

/* ---- Preparation ---- */

static const struct prepared_struct *prepare_struct(struct json_output *o, const struct duda_schema *schema);

static bool prepare_key(struct json_output *o, struct prepared_member *member)
{
    struct mk_buf buf = mk_buf_fixed(o->keys + o->keys_len, KEYS_MAX - o->keys_len);
    struct mk_json_writer w = {.out = &buf, .comma = true};
    mk_json_key(&w, duda_schema_field_name(member->field));
    member->key = (uint16_t)o->keys_len;
    member->key_len = (uint16_t)buf.len;
    o->keys_len += buf.len;
    return !buf.failed;
}

static enum member_form member_form_of(const struct prepared_member *member)
{
    const struct duda_schema_field *field = member->field;
    if (field->kind == DUDA_KIND_STRING)
        return field->is_list ? FORM_STRINGS : FORM_STRING;
    if (field->is_list)
        return FORM_OTHER;
    return field->kind == DUDA_KIND_INTEGER ? FORM_INTEGER
           : field->kind == DUDA_KIND_BOOL  ? FORM_BOOL
           : member->object                 ? FORM_OBJECT
                                            : FORM_OTHER;
}

static bool prepare_member(struct json_output *o, size_t i, const struct duda_schema_field *field)
{
    struct prepared_member *member = &o->members[i];
    *member = (struct prepared_member){.field = field, .offset = field->offset};
    if (field->kind == DUDA_KIND_OBJECT && !field->is_list)
        member->object = prepare_struct(o, field->schema);
    member->form = member_form_of(member);
    return prepare_key(o, member);
}

static const struct prepared_struct *find_prepared(const struct json_output *o,
                                                   const struct duda_schema *schema)
{
    for (size_t i = 0; i < o->n_structs; i++)
        if (o->structs[i].schema == schema)
            return &o->structs[i];
    return NULL;
}

/* Returns NULL if the limits do not allow another struct, or did not allow this one before. */
static const struct prepared_struct *prepare_struct(struct json_output *o, const struct duda_schema *schema)
{
    const struct prepared_struct *known = find_prepared(o, schema);
    if (known)
        return known->n ? known : NULL;
    if (o->n_structs == STRUCTS_MAX)
        return NULL;
    struct prepared_struct *s = &o->structs[o->n_structs++];
    *s = (struct prepared_struct){.schema = schema, .first = o->n_members, .space = 2 + BLOCK};
    if (schema->n > MEMBERS_MAX - o->n_members)
        return NULL;
    o->n_members += schema->n;
    for (size_t i = 0; i < schema->n; i++) {
        if (!prepare_member(o, s->first + i, duda_schema_field_at(schema, i)))
            return NULL;
        s->space += o->members[s->first + i].key_len + (size_t)VALUE_MAX;
    }
    s->n = schema->n;
    return s->n ? s : NULL;
}

/* ---- Structs ---- */

/* Each function below writes a value at `at`, and returns its end with space for `space` more bytes, or NULL. */

static char *output_write_value(struct json_output *o, char *at, const struct duda_value *v, size_t depth,
                                size_t space)
{
    o->w.out->len = (size_t)(at - o->w.out->p);
    o->w.comma = false;
    write_value(o, v, depth);
    return output_begin(o, space);
}

static char *output_write_string(struct json_output *o, char *at, mk_str s, size_t space)
{
    at = output_reserve(o, at, s.len + 2 + space);
    if (!at)
        return NULL;
    if (s.p && copy_if_plain(at + 1, s)) {
        at[0] = at[s.len + 1] = '"';
        return at + s.len + 2;
    }
    struct duda_value v = duda_value_text(s);
    return output_write_value(o, at, &v, 0, space);
}

static char *output_write_strings(struct json_output *o, char *at, const mk_str *strings, size_t n,
                                  size_t space)
{
    *at++ = '[';
    for (size_t i = 0; i < n && at; i++) {
        *at = ',';
        at = output_write_string(o, at + (i > 0), strings[i], space);
    }
    if (at)
        *at++ = ']';
    return at;
}

static char *output_write_struct(struct json_output *o, char *at, const struct prepared_struct *s,
                                 const void *base, size_t depth);

/* Writes a member that is absent, or that the fast path does not support. Omits absent optional members. */
static char *output_write_other(struct json_output *o, char *at, const struct prepared_member *member,
                                size_t *skip, const void *base, size_t depth, size_t space)
{
    struct duda_value v = duda_schema_field_value(member->field, base);
    if (member->field->optional && v.kind == DUDA_VALUE_NULL)
        return at;
    at = copy_key(at, o, member, *skip);
    *skip = 0;
    return output_write_value(o, at, &v, depth, space);
}

static bool member_is_present(const struct prepared_member *member, const void *base)
{
    return !member->field->presence_offset || duda_schema_field_is_present(member->field, base);
}

static char *output_write_list_of_strings(struct json_output *o, char *at,
                                          const struct prepared_member *member, const char *base,
                                          size_t space)
{
    mk_str *strings;
    size_t n;
    memcpy(&strings, base + member->offset, sizeof strings);
    memcpy(&n, base + member->field->count_offset, sizeof n);
    return output_write_strings(o, at, strings, n, space);
}

/* Writes a member that the fast path supports. */
static char *output_write_member(struct json_output *o, char *at, const struct prepared_member *member,
                                 const char *base, size_t depth, size_t space)
{
    mk_str string;
    switch (member->form) {
    case FORM_INTEGER:
        return copy_integer(at, duda_schema_field_integer(member->field, base + member->offset));
    case FORM_BOOL:
        return copy_bool(at, base[member->offset]);
    case FORM_STRING:
        memcpy(&string, base + member->offset, sizeof string);
        return output_write_string(o, at, string, space);
    case FORM_STRINGS:
        return output_write_list_of_strings(o, at, member, base, space);
    case FORM_OBJECT:
    case FORM_OTHER:
        break;
    }
    at = output_write_struct(o, at, member->object, base + member->offset, depth - 1);
    return output_reserve(o, at, space);
}

/* Returns whether the fast path can write the member. An absent string is null, or omitted, so it cannot. */
static bool member_has_fast_form(const struct prepared_member *member, const char *base, size_t depth)
{
    mk_str string;
    if (member->form == FORM_OTHER || !depth || !member_is_present(member, base))
        return false;
    if (member->form != FORM_STRING)
        return true;
    memcpy(&string, base + member->offset, sizeof string);
    return string.p;
}

static char *output_write_struct(struct json_output *o, char *at, const struct prepared_struct *s,
                                 const void *base, size_t depth)
{
    const struct prepared_member *member = &o->members[s->first], *end = member + s->n;
    size_t space = s->space, skip = 1;
    at = output_reserve(o, at, space);
    if (!at)
        return NULL;
    *at++ = '{';
    for (; member < end && at; member++) {
        if (!member_has_fast_form(member, base, depth)) {
            at = output_write_other(o, at, member, &skip, base, depth, space);
            continue;
        }
        at = output_write_member(o, copy_key(at, o, member, skip), member, base, depth, space);
        skip = 0;
    }
    if (at)
        *at++ = '}';
    return at;
}

/* Omits absent optional members. */
static void write_struct(struct json_output *o, const struct duda_schema *schema, const void *base,
                         size_t depth)
{
    mk_json_begin_object(&o->w);
    for (size_t i = 0; i < schema->n && !o->w.out->failed; i++) {
        const struct duda_schema_field *m = duda_schema_field_at(schema, i);
        struct duda_value v = duda_schema_field_value(m, base);
        if (m->optional && v.kind == DUDA_VALUE_NULL)
            continue;
        mk_json_key(&o->w, duda_schema_field_name(m));
        write_value(o, &v, depth);
    }
    mk_json_end_object(&o->w);
}

/* ---- Lists and maps ---- */

/* Returns the schema of the elements, if there are several and they are structs. */
static const struct duda_schema *common_element_schema(const struct duda_value *v)
{
    bool are_structs =
        v->kind == DUDA_VALUE_STRUCTS && (!v->of.in.field || v->of.in.field->kind == DUDA_KIND_OBJECT);
    return are_structs && v->n > 1 ? v->of.in.schema : NULL;
}

/* Returns false, with nothing written, if there is no space for the longest values. */
static bool write_prepared_list(struct json_output *o, const struct prepared_struct *s,
                                const struct duda_value *v, size_t depth)
{
    struct mk_buf *out = o->w.out;
    size_t size = v->of.in.field ? v->of.in.field->size : s->schema->size, before = out->len;
    const char *element = v->of.in.object;
    char *at = output_begin(o, 1);
    for (size_t i = 0; i < v->n && at; i++) {
        at = output_write_struct(o, at, s, element + i * size, depth);
        at = output_reserve(o, at, 1);
        if (at && i + 1 < v->n)
            *at++ = ',';
    }
    if (!at) {
        out->len = before;
        out->failed = false;
        o->needs_exact_space = true;
        o->w.comma = false;
        return false;
    }
    out->len = (size_t)(at - out->p);
    o->w.comma = true;
    return true;
}

static const struct prepared_struct *prepare_elements(struct json_output *o, const struct duda_value *v,
                                                      size_t depth)
{
    const struct duda_schema *schema = common_element_schema(v);
    bool is_possible = schema && depth && !o->w.out->failed && !o->needs_exact_space;
    return is_possible ? prepare_struct(o, schema) : NULL;
}

static void write_list(struct json_output *o, const struct duda_value *v, size_t depth)
{
    const struct prepared_struct *s = prepare_elements(o, v, depth);
    mk_json_begin_array(&o->w);
    if (!s || o->w.out->failed || !write_prepared_list(o, s, v, depth - 1))
        for (size_t i = 0; i < v->n && !o->w.out->failed; i++) {
            struct duda_value element = duda_value_item(v, i);
            write_value(o, &element, depth);
        }
    mk_json_end_array(&o->w);
}

/* A null value in a map is written, not omitted. */
static void write_map(struct json_output *o, const struct duda_value *v, size_t depth)
{
    mk_json_begin_object(&o->w);
    for (size_t i = 0; i < v->n && !o->w.out->failed; i++) {
        mk_json_key(&o->w, v->of.map[i].name);
        write_value(o, &v->of.map[i].value, depth);
    }
    mk_json_end_object(&o->w);
}

/* Writes a map, whose elements are structs with a name and a value. */
static void write_struct_map(struct json_output *o, const struct duda_value *v, size_t depth)
{
    const struct duda_schema *schema = v->of.in.schema;
    mk_json_begin_object(&o->w);
    for (size_t i = 0; i < v->n && schema->n == 2 && !o->w.out->failed; i++) {
        const char *at = (const char *)v->of.in.object + i * v->of.in.field->size;
        struct duda_value name = duda_schema_field_value(duda_schema_field_at(schema, 0), at);
        struct duda_value value = duda_schema_field_value(duda_schema_field_at(schema, 1), at);
        if (name.kind != DUDA_VALUE_TEXT)
            continue;
        mk_json_key_str(&o->w, name.of.text);
        write_value(o, &value, depth);
    }
    mk_json_end_object(&o->w);
}

static bool is_struct_map(const struct duda_value *v)
{
    return v->kind == DUDA_VALUE_STRUCTS && v->of.in.field && v->of.in.field->is_map;
}

static void write_nested_value(struct json_output *o, const struct duda_value *v, size_t depth)
{
    if (depth == 0)
        mk_json_null(&o->w);
    else if (v->kind == DUDA_VALUE_STRUCT)
        write_struct(o, v->of.in.schema, v->of.in.object, depth - 1);
    else if (v->kind == DUDA_VALUE_MAP)
        write_map(o, v, depth - 1);
    else if (is_struct_map(v))
        write_struct_map(o, v, depth - 1);
    else
        write_list(o, v, depth - 1);
}

static void write_value(struct json_output *o, const struct duda_value *v, size_t depth)
{
    switch (v->kind) {
    case DUDA_VALUE_NULL:
        mk_json_null(&o->w);
        break;
    case DUDA_VALUE_BOOL:
        mk_json_bool(&o->w, v->of.boolean);
        break;
    case DUDA_VALUE_INTEGER:
        mk_json_int(&o->w, v->of.integer);
        break;
    case DUDA_VALUE_UNSIGNED:
        mk_json_uint(&o->w, v->of.uinteger);
        break;
    case DUDA_VALUE_NUMBER:
        mk_json_double(&o->w, v->of.number);
        break;
    case DUDA_VALUE_TEXT:
        mk_json_string(&o->w, v->of.text);
        break;
    case DUDA_VALUE_RAW:
        mk_json_raw(&o->w, v->of.text);
        break;
    case DUDA_VALUE_BYTES:
    case DUDA_VALUE_TIMESTAMP:
        mk_json_begin_string(&o->w);
        duda_value_write(o->w.out, v);
        mk_json_end_string(&o->w);
        break;
    case DUDA_VALUE_STRUCT:
    case DUDA_VALUE_STRUCTS:
    case DUDA_VALUE_LIST:
    case DUDA_VALUE_MAP:
        write_nested_value(o, v, depth);
        break;
    }
}

void duda_json_write(struct mk_buf *out, const struct duda_value *v)
{
    struct json_output o;
    o.w = mk_json_writer_to(out);
    o.needs_exact_space = false;
    o.n_structs = o.n_members = o.keys_len = 0;
    write_value(&o, v, MK_JSON_DEPTH_MAX);
}
