/* SPDX-License-Identifier: Apache-2.0 */
#include "json_compare.h"

#include <monkey/json_reader.h>
#include <monkey/mem.h>
#include <stdlib.h>

enum { PATH_MAX_LEN = 64 * 1024, NUMBER_MAX = 64 };

/* ---- Memory ---- */

struct block {
    struct block *next;
    max_align_t data[];
};

static void *block_alloc(void *ctx, size_t size)
{
    struct block **first = ctx, *b = mk_mem_alloc(sizeof *b + size);
    if (!b)
        return NULL;
    b->next = *first;
    *first = b;
    return b->data;
}

static void free_blocks(struct block *first)
{
    for (struct block *b = first, *next; b; b = next) {
        next = b->next;
        mk_mem_free(b);
    }
}

/* ---- Reading ---- */

static const struct mk_json_limits limits = {.size = SIZE_MAX, .depth = MK_JSON_DEPTH_MAX, .items = SIZE_MAX};

/* Returns the whole text as one value; absent if it is not JSON. */
static mk_str whole_value(mk_str text, const struct mk_allocator *memory)
{
    struct mk_json_reader r;
    struct mk_json_error error;
    mk_str value;
    bool ok = mk_json_reader_init(&r, text, memory, &limits, &error) && mk_json_reader_skip(&r, &value) &&
              mk_json_reader_expect_end(&r);
    return ok ? value : MK_STR_NULL;
}

/* An iterator over the members of an object or the elements of an array. */
struct items {
    struct mk_json_reader r;
    struct mk_json_error error;
    char close;
    bool is_first;
};

/* Begins at the first item of a value that whole_value() has checked. */
static void begin_items(struct items *it, mk_str value, const struct mk_allocator *memory)
{
    (void)mk_json_reader_init(&it->r, value, memory, &limits, &it->error);
    it->close = mk_json_reader_accept(&it->r, '{') ? '}' : ']';
    it->is_first = true;
    (void)mk_json_reader_accept(&it->r, '[');
}

/* Returns false at the end. In an array, *key stays unchanged. */
static bool next_item(struct items *it, mk_str *key, mk_str *value)
{
    bool any = it->is_first ? !mk_json_reader_accept(&it->r, it->close)
                            : mk_json_reader_next_element(&it->r, it->close);
    it->is_first = false;
    if (any && it->close == '}')
        any = mk_json_reader_name(&it->r, key) && mk_json_reader_expect(&it->r, ':', "`:`");
    return any && mk_json_reader_skip(&it->r, value);
}

/* Returns the content of a string, without quotes and escapes. */
static mk_str string_content(mk_str string, const struct mk_allocator *memory)
{
    struct mk_json_reader r;
    struct mk_json_error error;
    mk_str content;
    bool ok = mk_json_reader_init(&r, string, memory, &limits, &error) && mk_json_reader_string(&r, &content);
    return ok ? content : MK_STR_NULL;
}

static bool is_number(mk_str scalar)
{
    return scalar.p[0] == '-' || mk_char_is_digit(scalar.p[0]);
}

/* ---- Comparing ---- */

struct comparison {
    struct tester_json_difference *difference;
    const struct mk_allocator *memory;
};

static double number_of(mk_str s)
{
    char buf[NUMBER_MAX];
    size_t n = s.len < sizeof buf - 1 ? s.len : sizeof buf - 1;
    memcpy(buf, s.p, n);
    buf[n] = '\0';
    return strtod(buf, NULL);
}

static bool has_fraction(mk_str number)
{
    return mk_str_find(number, '.') != MK_STR_NONE || mk_str_find(number, 'e') != MK_STR_NONE ||
           mk_str_find(number, 'E') != MK_STR_NONE;
}

static bool scalars_are_equal(const struct comparison *c, mk_str a, mk_str b)
{
    if (mk_str_eq(a, b))
        return true;
    if (a.p[0] == '"' && b.p[0] == '"')
        return mk_str_eq(string_content(a, c->memory), string_content(b, c->memory));
    bool are_exact = a.len < 16 && b.len < 16; /* a double distinguishes such integers */
    return is_number(a) && is_number(b) && (are_exact || has_fraction(a) || has_fraction(b)) &&
           number_of(a) == number_of(b);
}

static mk_str find_member(const struct comparison *c, mk_str object, mk_str key)
{
    struct items it;
    mk_str name, value, found = MK_STR_NULL;
    begin_items(&it, object, c->memory);
    while (next_item(&it, &name, &value))
        if (mk_str_eq(name, key))
            found = value;
    return found;
}

static bool report_difference(const struct comparison *c, mk_str got, mk_str expected)
{
    c->difference->got = got;
    c->difference->expected = expected;
    return false;
}

static bool values_are_equal(const struct comparison *c, mk_str got, mk_str expected);

static bool members_are_equal(const struct comparison *c, mk_str got, mk_str expected)
{
    struct mk_buf *path = &c->difference->path;
    struct items it;
    mk_str key, value;
    size_t len = path->len;
    begin_items(&it, expected, c->memory);
    while (next_item(&it, &key, &value)) {
        mk_str found = find_member(c, got, key);
        mk_buf_addf(path, ".%.*s", MK_STR_ARG(key));
        if (!found.p)
            return report_difference(c, MK_STR_NULL, value);
        if (!values_are_equal(c, found, value))
            return false;
        path->len = len;
    }
    begin_items(&it, got, c->memory);
    while (next_item(&it, &key, &value))
        if (!find_member(c, expected, key).p) {
            mk_buf_addf(path, ".%.*s", MK_STR_ARG(key));
            return report_difference(c, value, MK_STR_NULL);
        }
    return true;
}

static bool elements_are_equal(const struct comparison *c, mk_str got, mk_str expected)
{
    struct mk_buf *path = &c->difference->path;
    struct items a, b;
    mk_str x, y, key;
    size_t len = path->len;
    begin_items(&a, got, c->memory);
    begin_items(&b, expected, c->memory);
    for (size_t i = 0;; i++) {
        bool has_a = next_item(&a, &key, &x), has_b = next_item(&b, &key, &y);
        if (!has_a && !has_b)
            return true;
        mk_buf_addf(path, "[%zu]", i);
        if (!has_a || !has_b)
            return report_difference(c, has_a ? x : MK_STR_NULL, has_b ? y : MK_STR_NULL);
        if (!values_are_equal(c, x, y))
            return false;
        path->len = len;
    }
}

static bool values_are_equal(const struct comparison *c, mk_str got, mk_str expected)
{
    if (got.p[0] == '{' && expected.p[0] == '{')
        return members_are_equal(c, got, expected);
    if (got.p[0] == '[' && expected.p[0] == '[')
        return elements_are_equal(c, got, expected);
    return scalars_are_equal(c, got, expected) || report_difference(c, got, expected);
}

bool tester_json_compare(mk_str got, mk_str expected, struct tester_json_difference *difference)
{
    struct block *blocks = NULL;
    const struct mk_allocator memory = {block_alloc, &blocks};
    const struct comparison c = {difference, &memory};
    mk_str a = whole_value(got, &memory), b = whole_value(expected, &memory);
    *difference = (struct tester_json_difference){
        .path = mk_buf_growing(PATH_MAX_LEN), .got = got, .expected = expected};
    mk_buf_add_char(&difference->path, '$');
    if (!b.p)
        difference->problem = "the expected text is not JSON";
    else if (!a.p)
        difference->problem = "it is not JSON";
    bool ok = a.p && b.p && values_are_equal(&c, a, b);
    free_blocks(blocks);
    return ok;
}

/* ---- Pointers ---- */

/* Returns whether the token of a JSON pointer is the key. */
static bool is_key(mk_str token, mk_str key)
{
    size_t i = 0;
    for (; token.len && i < key.len; i++) {
        bool is_escaped = token.p[0] == '~' && token.len > 1;
        char c = is_escaped ? (token.p[1] == '1' ? '/' : '~') : token.p[0];
        if (c != key.p[i])
            return false;
        token = mk_str_skip(token, is_escaped ? 2 : 1);
    }
    return !token.len && i == key.len;
}

static mk_str find_child(mk_str value, mk_str token, const struct mk_allocator *memory)
{
    bool is_object = value.p[0] == '{';
    struct items it;
    mk_str key = MK_STR_NULL, child;
    uint64_t index = 0, i = 0;
    if (!is_object && (value.p[0] != '[' || !mk_num_parse(token, &index)))
        return MK_STR_NULL;
    begin_items(&it, value, memory);
    for (; next_item(&it, &key, &child); i++)
        if (is_object ? is_key(token, key) : i == index)
            return child;
    return MK_STR_NULL;
}

mk_str tester_json_find(struct duda_test *t, mk_str json, mk_str pointer)
{
    struct block *blocks = NULL;
    const struct mk_allocator memory = {block_alloc, &blocks};
    mk_str value = pointer.len && pointer.p[0] != '/' ? MK_STR_NULL : whole_value(json, &memory);
    pointer = mk_str_skip(pointer, 1);
    while (value.p && pointer.p) {
        mk_str token = mk_str_cut(&pointer, '/');
        if (token.p && (token.len || pointer.p))
            value = find_child(value, token, &memory);
    }
    value = tester_keep(t, value.p && value.p[0] == '"' ? string_content(value, &memory) : value);
    free_blocks(blocks);
    return value;
}
