/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/json.h"

#include "wr/text.h"

enum { TRIES = 64 }; /* stop after this many lines with an invalid object */

static bool skip_value(mk_str *s, unsigned depth);

static void skip_space(mk_str *s)
{
    size_t n = 0;
    while (n < s->len && (s->p[n] == ' ' || s->p[n] == '\t' || s->p[n] == '\n' || s->p[n] == '\r'))
        n++;
    *s = mk_str_skip(*s, n);
}

static bool skip_literal(mk_str *s, mk_str text)
{
    if (!mk_str_starts(*s, text))
        return false;
    *s = mk_str_skip(*s, text.len);
    return true;
}

static bool skip_digits(mk_str *s)
{
    size_t n = 0;
    while (n < s->len && mk_char_is_digit(s->p[n]))
        n++;
    *s = mk_str_skip(*s, n);
    return n > 0;
}

static bool skip_number(mk_str *s)
{
    (void)skip_literal(s, MK_STR("-"));
    if (!skip_literal(s, MK_STR("0")) && !skip_digits(s))
        return false;
    if (skip_literal(s, MK_STR(".")) && !skip_digits(s))
        return false;
    if (skip_literal(s, MK_STR("e")) || skip_literal(s, MK_STR("E"))) {
        (void)(skip_literal(s, MK_STR("+")) || skip_literal(s, MK_STR("-")));
        return skip_digits(s);
    }
    return true;
}

static bool skip_escape(mk_str *s)
{
    if (s->len < 2)
        return false;
    char c = s->p[1];
    *s = mk_str_skip(*s, 2);
    if (c != 'u')
        return c && memchr("\"\\/bfnrt", c, 8);
    for (size_t i = 0; i < 4; i++)
        if (i >= s->len || mk_char_hex(s->p[i]) < 0)
            return false;
    *s = mk_str_skip(*s, 4);
    return true;
}

/* UTF-8 is not validated: wr prints no strings and compares names byte by byte. */
static bool skip_string(mk_str *s)
{
    if (!skip_literal(s, MK_STR("\"")))
        return false;
    while (s->len && s->p[0] != '"') {
        if ((unsigned char)s->p[0] < 0x20)
            return false;
        if (s->p[0] != '\\')
            *s = mk_str_skip(*s, 1);
        else if (!skip_escape(s))
            return false;
    }
    return skip_literal(s, MK_STR("\""));
}

static bool skip_member_name(mk_str *s)
{
    if (!skip_string(s))
        return false;
    skip_space(s);
    return skip_literal(s, MK_STR(":"));
}

static bool skip_list(mk_str *s, mk_str end, bool named, unsigned depth)
{
    skip_space(s);
    if (skip_literal(s, end))
        return true;
    do {
        skip_space(s);
        if ((named && !skip_member_name(s)) || !skip_value(s, depth + 1))
            return false;
        skip_space(s);
    } while (skip_literal(s, MK_STR(",")));
    return skip_literal(s, end);
}

static bool skip_value(mk_str *s, unsigned depth)
{
    if (depth >= WR_JSON_DEPTH)
        return false;
    skip_space(s);
    if (skip_literal(s, MK_STR("{")))
        return skip_list(s, MK_STR("}"), true, depth);
    if (skip_literal(s, MK_STR("[")))
        return skip_list(s, MK_STR("]"), false, depth);
    if (s->len && s->p[0] == '"')
        return skip_string(s);
    return skip_literal(s, MK_STR("true")) || skip_literal(s, MK_STR("false")) ||
           skip_literal(s, MK_STR("null")) || skip_number(s);
}

bool wr_json_find_object(mk_str text, mk_str *object)
{
    for (unsigned tries = 0; tries < TRIES && text.p;) {
        if (text.len && text.p[0] == '{') {
            mk_str rest = mk_str_first(text, WR_JSON_LEN);
            if (skip_value(&rest, 0)) {
                *object = mk_str_of(text.p, (size_t)(rest.p - text.p));
                return true;
            }
            tries++;
        }
        (void)mk_str_cut(&text, '\n');
    }
    return false;
}

bool wr_json_member(mk_str object, mk_str name, mk_str *value)
{
    mk_str s = object;
    if (!skip_literal(&s, MK_STR("{")))
        return false;
    do {
        skip_space(&s);
        mk_str key = s;
        if (!skip_string(&s))
            return false;
        key = mk_str_of(key.p + 1, (size_t)(s.p - key.p) - 2);
        skip_space(&s);
        if (!skip_literal(&s, MK_STR(":")))
            return false;
        skip_space(&s);
        mk_str begin = s;
        if (!skip_value(&s, 0))
            return false;
        *value = mk_str_of(begin.p, (size_t)(s.p - begin.p));
        if (mk_str_eq(key, name))
            return true;
        skip_space(&s);
    } while (skip_literal(&s, MK_STR(",")));
    return false;
}

bool wr_json_number(mk_str object, const char *path, double *out)
{
    mk_str rest = mk_str_from_c(path);
    while (rest.p) {
        mk_str value;
        if (!wr_json_member(object, mk_str_cut(&rest, '/'), &value))
            return false;
        object = value;
    }
    return wr_text_parse_number(object, out);
}
