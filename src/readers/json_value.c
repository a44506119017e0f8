/* SPDX-License-Identifier: Apache-2.0 */
/* Parses JSON into values, and finds and writes values. */
#include <errno.h>
#include <monkey/buf.h>
#include <monkey/json_value.h>
#include <monkey/text.h>
#include <stdlib.h>

enum { SHOWN_MAX = 64, NAME_TEXT_MAX = 200 };

/* An element of a list or object; the elements are linked in reverse order while their number is unknown. */
struct element_link {
    struct element_link *before;
    struct mk_json_member element;
};

static bool read_value(struct mk_json_reader *r, struct mk_json_value *out);

static void *alloc_or_fail(struct mk_json_reader *r, size_t n, size_t size)
{
    void *p = mk_allocator_zalloc(r->memory, n, size);
    if (!p)
        r->error = -ENOMEM;
    return p;
}

/* ---- Lists and objects ---- */

static bool read_name(struct mk_json_reader *r, struct mk_json_member *out)
{
    mk_str name;
    (void)mk_json_reader_peek(r);
    out->offset = r->at;
    if (!mk_json_reader_name(r, &name) || !mk_json_reader_expect(r, ':', "`:`"))
        return false;
    char *copy = (char *)alloc_or_fail(r, name.len + 1, 1);
    if (copy && name.len)
        memcpy(copy, name.p, name.len);
    out->name = mk_str_of(copy, copy ? name.len : 0);
    return copy != NULL;
}

static int compare_members(const void *a, const void *b)
{
    const struct mk_json_member *const *x = a, *const *y = b;
    int order = strcmp((*x)->name.p, (*y)->name.p);
    size_t x_at = (*x)->offset, y_at = (*y)->offset;
    if (order)
        return order;
    return x_at < y_at ? -1 : x_at > y_at;
}

/* JSON parsers disagree on which duplicate wins, so duplicates are errors. */
static bool check_duplicate_names(struct mk_json_reader *r, const struct mk_json_member *members, size_t n)
{
    const struct mk_json_member **all =
        n > 1 ? alloc_or_fail(r, n, sizeof(const struct mk_json_member *)) : NULL;
    char buf[NAME_TEXT_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    if (!all)
        return n < 2;
    for (size_t i = 0; i < n; i++)
        all[i] = &members[i];
    qsort(all, n, sizeof(const struct mk_json_member *), compare_members);
    for (size_t i = 1; i < n; i++)
        if (mk_str_eq(all[i - 1]->name, all[i]->name)) {
            mk_buf_add_char(&text, '`');
            mk_log_escape_to(&text, mk_str_first(all[i]->name, SHOWN_MAX), NAME_TEXT_MAX - 40);
            return mk_json_reader_fail(r, -EINVAL, all[i]->offset, "%.*s` occurs more than once",
                                       MK_STR_ARG(mk_buf_str(&text)));
        }
    return true;
}

static bool collect_items(struct mk_json_reader *r, const struct element_link *last,
                          struct mk_json_value *out)
{
    struct mk_json_value *items = alloc_or_fail(r, out->n, sizeof *items);
    for (size_t i = out->n; items && i > 0; last = last->before)
        items[--i] = last->element.value;
    out->of.items = items;
    return items != NULL;
}

static bool collect_members(struct mk_json_reader *r, const struct element_link *last,
                            struct mk_json_value *out)
{
    struct mk_json_member *members = alloc_or_fail(r, out->n, sizeof *members);
    for (size_t i = out->n; members && i > 0; last = last->before)
        members[--i] = last->element;
    out->of.members = members;
    return members && check_duplicate_names(r, members, out->n);
}

static bool read_nested(struct mk_json_reader *r, struct mk_json_value *out)
{
    bool is_object = out->kind == MK_JSON_OBJECT;
    char close = is_object ? '}' : ']';
    struct element_link *last = NULL;
    r->at++; /* the opening bracket */
    if (!mk_json_reader_enter(r))
        return false;
    if (!mk_json_reader_accept(r, close))
        do {
            struct element_link *next = mk_json_reader_count(r) ? alloc_or_fail(r, 1, sizeof *next) : NULL;
            if (!next || (is_object && !read_name(r, &next->element)) || !read_value(r, &next->element.value))
                return false;
            next->before = last;
            last = next;
            out->n++;
        } while (mk_json_reader_next_element(r, close));
    mk_json_reader_leave(r);
    return !r->error && (is_object ? collect_members(r, last, out) : collect_items(r, last, out));
}

/* ---- Values ---- */

static bool parse_integer(mk_str s, int64_t *out)
{
    bool is_negative = s.len && s.p[0] == '-';
    uint64_t n;
    if (!mk_num_parse(mk_str_skip(s, is_negative), &n) || n > (uint64_t)INT64_MAX + is_negative)
        return false;
    *out = (int64_t)(is_negative ? ~n + 1 : n);
    return true;
}

static bool read_number(struct mk_json_reader *r, struct mk_json_value *out)
{
    size_t begin = r->at;
    bool is_integer;
    mk_str text;
    if (!mk_json_reader_number(r, &text, &is_integer))
        return false;
    out->kind = is_integer && parse_integer(text, &out->of.integer) ? MK_JSON_INTEGER : MK_JSON_NUMBER;
    return out->kind == MK_JSON_INTEGER || mk_json_number_parse(text, &out->of.number) ||
           mk_json_reader_fail(r, -EINVAL, begin, "the number is too large, or has too many digits");
}

static bool read_value(struct mk_json_reader *r, struct mk_json_value *out)
{
    char next = mk_json_reader_peek(r);
    mk_str text;
    *out = (struct mk_json_value){.kind = MK_JSON_NULL, .offset = r->at};
    if (next == '{' || next == '[') {
        out->kind = next == '{' ? MK_JSON_OBJECT : MK_JSON_ARRAY;
        return read_nested(r, out);
    }
    if (next == '-' || mk_char_is_digit(next))
        return read_number(r, out);
    if (next == '"') {
        out->kind = MK_JSON_STRING;
        return mk_json_reader_string_copy(r, &out->of.string);
    }
    if (next == 't' || next == 'f') {
        out->kind = MK_JSON_BOOL;
        out->of.boolean = next == 't';
    }
    return mk_json_reader_skip(r, &text);
}

int mk_json_parse(mk_str text, const struct mk_allocator *memory, const struct mk_json_limits *limits,
                  struct mk_json_value *out, struct mk_json_error *error)
{
    struct mk_json_reader r;
    *out = (struct mk_json_value){.kind = MK_JSON_NULL};
    if (mk_json_reader_init(&r, text, memory, limits, error) && read_value(&r, out))
        (void)mk_json_reader_expect_end(&r);
    if (r.error)
        *out = (struct mk_json_value){.kind = MK_JSON_NULL};
    return r.error;
}

/* ---- Access ---- */

static const struct mk_json_value *find_member(const struct mk_json_value *v, mk_str name)
{
    for (size_t i = 0; v && v->kind == MK_JSON_OBJECT && i < v->n; i++)
        if (mk_str_eq(v->of.members[i].name, name))
            return &v->of.members[i].value;
    return NULL;
}

const struct mk_json_value *mk_json_get(const struct mk_json_value *v, const char *name)
{
    return find_member(v, mk_str_from_c(name));
}

const struct mk_json_value *mk_json_at(const struct mk_json_value *v, size_t i)
{
    return v && v->kind == MK_JSON_ARRAY && i < v->n ? &v->of.items[i] : NULL;
}

/* Does a token of a JSON Pointer (RFC 6901), in which ~0 and ~1 are escapes, stand for `name`? */
static bool token_matches(mk_str token, mk_str name)
{
    size_t at = 0;
    for (size_t i = 0; i < token.len; i++, at++) {
        char c = token.p[i];
        if (c == '~' && i + 1 < token.len && (token.p[i + 1] == '0' || token.p[i + 1] == '1'))
            c = token.p[++i] == '0' ? '~' : '/';
        if (at >= name.len || name.p[at] != c)
            return false;
    }
    return at == name.len;
}

static const struct mk_json_value *find_token(const struct mk_json_value *v, mk_str token)
{
    uint64_t index;
    if (v->kind == MK_JSON_ARRAY) {
        bool has_zero = token.len > 1 && token.p[0] == '0';
        return !has_zero && mk_num_parse(token, &index) && index < v->n ? &v->of.items[index] : NULL;
    }
    for (size_t i = 0; v->kind == MK_JSON_OBJECT && i < v->n; i++)
        if (token_matches(token, v->of.members[i].name))
            return &v->of.members[i].value;
    return NULL;
}

const struct mk_json_value *mk_json_find(const struct mk_json_value *v, const char *path)
{
    mk_str rest = mk_str_from_c(path);
    if (rest.len && rest.p[0] != '/')
        return NULL;
    if (rest.len)
        (void)mk_str_cut(&rest, '/');
    else
        return v;
    while (v && rest.p)
        v = find_token(v, mk_str_cut(&rest, '/'));
    return v;
}

bool mk_json_is_null(const struct mk_json_value *v)
{
    return !v || v->kind == MK_JSON_NULL;
}

mk_str mk_json_as_string(const struct mk_json_value *v)
{
    return v && v->kind == MK_JSON_STRING ? v->of.string : MK_STR_NULL;
}

bool mk_json_as_int(const struct mk_json_value *v, int64_t *out)
{
    bool fits = v && v->kind == MK_JSON_INTEGER;
    if (fits)
        *out = v->of.integer;
    return fits;
}

bool mk_json_as_double(const struct mk_json_value *v, double *out)
{
    bool fits = v && (v->kind == MK_JSON_INTEGER || v->kind == MK_JSON_NUMBER);
    if (fits)
        *out = v->kind == MK_JSON_INTEGER ? (double)v->of.integer : v->of.number;
    return fits;
}

bool mk_json_as_bool(const struct mk_json_value *v, bool *out)
{
    bool fits = v && v->kind == MK_JSON_BOOL;
    if (fits)
        *out = v->of.boolean;
    return fits;
}

/* ---- Writing ---- */

static void write_value(struct mk_json_writer *w, const struct mk_json_value *v, size_t depth);

static void write_nested(struct mk_json_writer *w, const struct mk_json_value *v, size_t depth)
{
    bool is_object = v->kind == MK_JSON_OBJECT;
    if (is_object)
        mk_json_begin_object(w);
    else
        mk_json_begin_array(w);
    for (size_t i = 0; i < v->n && !w->out->failed; i++)
        if (is_object)
            write_value(mk_json_key_str(w, v->of.members[i].name), &v->of.members[i].value, depth);
        else
            write_value(w, &v->of.items[i], depth);
    if (is_object)
        mk_json_end_object(w);
    else
        mk_json_end_array(w);
}

static void write_value(struct mk_json_writer *w, const struct mk_json_value *v, size_t depth)
{
    switch (v ? v->kind : MK_JSON_NULL) {
    case MK_JSON_NULL:
        mk_json_null(w);
        break;
    case MK_JSON_BOOL:
        mk_json_bool(w, v->of.boolean);
        break;
    case MK_JSON_INTEGER:
        mk_json_int(w, v->of.integer);
        break;
    case MK_JSON_NUMBER:
        mk_json_double(w, v->of.number);
        break;
    case MK_JSON_STRING:
        mk_json_string(w, v->of.string);
        break;
    case MK_JSON_ARRAY:
    case MK_JSON_OBJECT:
        if (depth)
            write_nested(w, v, depth - 1);
        else
            mk_json_null(w);
        break;
    }
}

void mk_json_value_write(struct mk_json_writer *w, const struct mk_json_value *v)
{
    write_value(w, v, MK_JSON_DEPTH_MAX);
}
