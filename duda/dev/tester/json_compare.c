/* SPDX-License-Identifier: Apache-2.0 */
#include "json_compare.h"

#include <monkey/text.h>
#include <monkey/utf8.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 200, KEY_MAX = 64 * 1024 };

/* ---- Reading ---- */

static void skip_blanks(mk_str *rest)
{
    while (rest->len && strchr(" \t\r\n", rest->p[0]))
        *rest = mk_str_skip(*rest, 1);
}

static mk_str take_text(mk_str *rest, size_t n)
{
    mk_str taken = mk_str_first(*rest, n);
    *rest = mk_str_skip(*rest, n);
    return taken;
}

static size_t string_len(mk_str s)
{
    size_t i = 1;
    while (i < s.len && s.p[i] != '"')
        i += s.p[i] == '\\' ? 2 : 1;
    return i < s.len ? i + 1 : 0;
}

static size_t scalar_len(mk_str s)
{
    size_t n = 0;
    while (n < s.len && !strchr(" \t\r\n,:]}", s.p[n]))
        n++;
    return n;
}

static bool is_number(mk_str s)
{
    size_t i = s.p[0] == '-';
    bool digits = i < s.len && mk_char_is_digit(s.p[i]);
    while (digits && i < s.len && (mk_char_is_digit(s.p[i]) || strchr(".eE+-", s.p[i])))
        i++;
    return digits && i == s.len;
}

static bool is_scalar(mk_str s)
{
    return s.len && (mk_str_eq(s, MK_STR("true")) || mk_str_eq(s, MK_STR("false")) ||
                     mk_str_eq(s, MK_STR("null")) || is_number(s));
}

static mk_str next_value(mk_str *rest, unsigned depth);

/* Reads the next member or element. `key` is NULL in an array. Returns false at the end, and if the text is
 * not valid JSON; *ok tells these apart. */
static bool next_item(mk_str *rest, bool is_first, mk_str *key, mk_str *value, unsigned depth, bool *ok)
{
    const char end = key ? '}' : ']';
    skip_blanks(rest);
    *ok = rest->len > 0;
    if (*ok && rest->p[0] == end)
        return false;
    if (*ok && !is_first) {
        *ok = rest->p[0] == ',';
        *rest = mk_str_skip(*rest, 1);
        skip_blanks(rest);
    }
    if (*ok && key) {
        *ok = rest->len && rest->p[0] == '"' && string_len(*rest);
        *key = *ok ? take_text(rest, string_len(*rest)) : MK_STR_NULL;
        skip_blanks(rest);
        *ok = *ok && rest->len && rest->p[0] == ':';
        *rest = mk_str_skip(*rest, 1);
    }
    *value = *ok ? next_value(rest, depth + 1) : MK_STR_NULL;
    *ok = value->p != NULL;
    return *ok;
}

/* Removes the next value from *rest. Returns its text; absent if it is not valid JSON. */
static mk_str next_value(mk_str *rest, unsigned depth)
{
    skip_blanks(rest);
    mk_str all = *rest, key, value;
    bool ok = true;
    if (!all.len || depth > DEPTH_MAX)
        return MK_STR_NULL;
    if (all.p[0] == '"')
        return string_len(all) ? take_text(rest, string_len(all)) : MK_STR_NULL;
    if (all.p[0] != '{' && all.p[0] != '[') {
        mk_str found = take_text(rest, scalar_len(all));
        return is_scalar(found) ? found : MK_STR_NULL;
    }
    *rest = mk_str_skip(*rest, 1);
    for (bool first = true; next_item(rest, first, all.p[0] == '{' ? &key : NULL, &value, depth, &ok);)
        first = false;
    *rest = mk_str_skip(*rest, 1);
    return ok ? mk_str_first(all, all.len - rest->len) : MK_STR_NULL;
}

/* Returns the whole text as one value; absent if it is not JSON. */
static mk_str whole_value(mk_str text)
{
    mk_str value = next_value(&text, 0);
    skip_blanks(&text);
    return text.len ? MK_STR_NULL : value;
}

static void append_utf8(struct mk_buf *out, unsigned long c)
{
    char bytes[4];
    mk_buf_add(out, mk_str_of(bytes, mk_utf8_encode(bytes, (uint32_t)c)));
}

static unsigned long parse_hex4(mk_str s)
{
    unsigned long c = 0;
    for (size_t i = 0; i < 4; i++)
        c = c * 16 + (unsigned long)(i < s.len && mk_char_hex(s.p[i]) >= 0 ? mk_char_hex(s.p[i]) : 0);
    return c;
}

void tester_json_unescape(mk_str string, struct mk_buf *out)
{
    static const char letters[] = "bfnrt", chars[] = "\b\f\n\r\t";
    mk_str rest = mk_str_first(mk_str_skip(string, 1), string.len - 2);
    while (rest.len) {
        size_t n = mk_str_find(rest, '\\');
        mk_buf_add(out, mk_str_first(rest, n));
        rest = mk_str_skip(rest, n == MK_STR_NONE ? rest.len : n + 1);
        if (!rest.len)
            return;
        char c = rest.p[0];
        const char *letter = strchr(letters, c);
        rest = mk_str_skip(rest, 1);
        if (c != 'u') {
            mk_buf_add_char(out, letter && *letter ? chars[letter - letters] : c);
            continue;
        }
        unsigned long code = parse_hex4(rest);
        rest = mk_str_skip(rest, 4);
        if (code >= 0xd800 && code < 0xdc00 && mk_str_starts(rest, MK_STR("\\u"))) {
            code = 0x10000 + ((code - 0xd800) << 10) + (parse_hex4(mk_str_skip(rest, 2)) - 0xdc00);
            rest = mk_str_skip(rest, 6);
        }
        append_utf8(out, code);
    }
}

/* ---- Comparing ---- */

static bool strings_are_equal(mk_str a, mk_str b)
{
    struct mk_buf x = mk_buf_growing(SIZE_MAX / 2), y = mk_buf_growing(SIZE_MAX / 2);
    tester_json_unescape(a, &x);
    tester_json_unescape(b, &y);
    bool equal = mk_str_eq(mk_buf_str(&x), mk_buf_str(&y));
    mk_buf_free(&x);
    mk_buf_free(&y);
    return equal;
}

static double number_of(mk_str s)
{
    char buf[64];
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

static bool scalars_are_equal(mk_str a, mk_str b)
{
    if (mk_str_eq(a, b))
        return true;
    if (a.p[0] == '"' && b.p[0] == '"')
        return strings_are_equal(a, b);
    bool are_exact = a.len < 16 && b.len < 16; /* a double distinguishes such integers */
    return is_number(a) && is_number(b) && (are_exact || has_fraction(a) || has_fraction(b)) &&
           number_of(a) == number_of(b);
}

static mk_str find_member(mk_str object, mk_str key)
{
    mk_str rest = mk_str_skip(object, 1), name, value, found = MK_STR_NULL;
    bool ok;
    for (bool first = true; next_item(&rest, first, &name, &value, 0, &ok); first = false)
        if (strings_are_equal(name, key))
            found = value;
    return found;
}

static bool report_difference(struct tester_json_difference *difference, mk_str got, mk_str expected)
{
    difference->got = got;
    difference->expected = expected;
    return false;
}

static bool values_are_equal(mk_str got, mk_str expected, struct tester_json_difference *difference);

/* Adds the key to the path: ".name". */
static void append_key(struct mk_buf *path, mk_str key)
{
    mk_buf_add_char(path, '.');
    tester_json_unescape(key, path);
}

static bool members_are_equal(mk_str got, mk_str expected, struct tester_json_difference *difference)
{
    size_t len = difference->path.len;
    mk_str rest = mk_str_skip(expected, 1), key, value;
    bool ok;
    for (bool first = true; next_item(&rest, first, &key, &value, 0, &ok); first = false) {
        mk_str found = find_member(got, key);
        append_key(&difference->path, key);
        if (!found.p)
            return report_difference(difference, MK_STR_NULL, value);
        if (!values_are_equal(found, value, difference))
            return false;
        difference->path.len = len;
    }
    rest = mk_str_skip(got, 1);
    for (bool first = true; next_item(&rest, first, &key, &value, 0, &ok); first = false) {
        if (find_member(expected, key).p)
            continue;
        append_key(&difference->path, key);
        return report_difference(difference, value, MK_STR_NULL);
    }
    return true;
}

static bool elements_are_equal(mk_str got, mk_str expected, struct tester_json_difference *difference)
{
    size_t len = difference->path.len;
    mk_str a = mk_str_skip(got, 1), b = mk_str_skip(expected, 1), x, y;
    bool ok;
    for (size_t i = 0;; i++) {
        bool has_a = next_item(&a, i == 0, NULL, &x, 0, &ok), has_b = next_item(&b, i == 0, NULL, &y, 0, &ok);
        if (!has_a && !has_b)
            return true;
        mk_buf_addf(&difference->path, "[%zu]", i);
        if (!has_a || !has_b)
            return report_difference(difference, has_a ? x : MK_STR_NULL, has_b ? y : MK_STR_NULL);
        if (!values_are_equal(x, y, difference))
            return false;
        difference->path.len = len;
    }
}

static bool values_are_equal(mk_str got, mk_str expected, struct tester_json_difference *difference)
{
    if (got.p[0] == '{' && expected.p[0] == '{')
        return members_are_equal(got, expected, difference);
    if (got.p[0] == '[' && expected.p[0] == '[')
        return elements_are_equal(got, expected, difference);
    return scalars_are_equal(got, expected) || report_difference(difference, got, expected);
}

bool tester_json_compare(mk_str got, mk_str expected, struct tester_json_difference *difference)
{
    mk_str a = whole_value(got), b = whole_value(expected);
    *difference =
        (struct tester_json_difference){.path = mk_buf_growing(KEY_MAX), .got = got, .expected = expected};
    mk_buf_add_char(&difference->path, '$');
    if (!b.p)
        difference->problem = "the expected text is not JSON";
    else if (!a.p)
        difference->problem = "it is not JSON";
    return a.p && b.p && values_are_equal(a, b, difference);
}

/* ---- Pointers ---- */

/* Returns whether the token of a JSON pointer is the key. */
static bool is_key(mk_str token, mk_str key)
{
    struct mk_buf text = mk_buf_growing(KEY_MAX), name = mk_buf_growing(KEY_MAX);
    for (size_t i = 0; i < token.len; i++)
        if (token.p[i] == '~' && i + 1 < token.len)
            mk_buf_add_char(&text, token.p[++i] == '1' ? '/' : '~');
        else
            mk_buf_add_char(&text, token.p[i]);
    tester_json_unescape(key, &name);
    bool equal = mk_str_eq(mk_buf_str(&text), mk_buf_str(&name));
    mk_buf_free(&text);
    mk_buf_free(&name);
    return equal;
}

static mk_str find_child(mk_str value, mk_str token)
{
    bool is_object = value.p[0] == '{', ok;
    mk_str rest = mk_str_skip(value, 1), key, child;
    uint64_t index = 0, i = 0;
    if (!is_object && (value.p[0] != '[' || !mk_num_parse(token, &index)))
        return MK_STR_NULL;
    for (; next_item(&rest, i == 0, is_object ? &key : NULL, &child, 0, &ok); i++)
        if (is_object ? is_key(token, key) : i == index)
            return child;
    return MK_STR_NULL;
}

mk_str tester_json_find(mk_str json, mk_str pointer)
{
    mk_str value = whole_value(json);
    if (pointer.len && pointer.p[0] != '/')
        return MK_STR_NULL;
    pointer = mk_str_skip(pointer, 1);
    while (value.p && pointer.p) {
        mk_str token = mk_str_cut(&pointer, '/');
        if (token.p && (token.len || pointer.p))
            value = find_child(value, token);
    }
    return value;
}
