/* SPDX-License-Identifier: Apache-2.0 */
#include "http/router_param_type.h"

/* Text and rest parameters have no type name: they have their own notation. */
static const mk_str names[MK_ROUTER_REST + 1] = {
    [MK_ROUTER_UUID] = MK_STR_INIT("uuid"),     [MK_ROUTER_DATE] = MK_STR_INIT("date"),
    [MK_ROUTER_UINT] = MK_STR_INIT("uint"),     [MK_ROUTER_INT] = MK_STR_INIT("int"),
    [MK_ROUTER_NUMBER] = MK_STR_INIT("number"), [MK_ROUTER_HEX] = MK_STR_INIT("hex"),
    [MK_ROUTER_ALPHA] = MK_STR_INIT("alpha"),   [MK_ROUTER_WORD] = MK_STR_INIT("word"),
    [MK_ROUTER_SLUG] = MK_STR_INIT("slug"),
};

enum mk_router_type mk_router_type_find(mk_str name)
{
    unsigned i = 0;
    while (i < MK_ROUTER_NO_TYPE && !(names[i].p && mk_str_eq(names[i], name)))
        i++;
    return (enum mk_router_type)i;
}

void mk_router_type_list(struct mk_buf *out)
{
    for (unsigned i = 0; names[i].p; i++) {
        if (i)
            mk_buf_add(out, MK_STR(", "));
        mk_buf_add(out, names[i]);
    }
}

/* ---- Characters ---- */

static bool is_hex_digit(char c)
{
    return mk_char_hex(c) >= 0;
}

static bool is_word_char(char c)
{
    return mk_char_is_alpha(c) || mk_char_is_digit(c) || c == '_';
}

static bool is_slug_char(char c)
{
    return is_word_char(c) || c == '-';
}

static bool are_all_chars(bool (*is)(char c), mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!is(s.p[i]))
            return false;
    return s.len > 0;
}

/* ---- Numbers ---- */

static bool is_number(mk_str s)
{
    if (s.len > 0 && s.p[0] == '-')
        s = mk_str_skip(s, 1);
    mk_str whole = mk_str_cut(&s, '.');
    return are_all_chars(mk_char_is_digit, whole) && (!s.p || are_all_chars(mk_char_is_digit, s));
}

/* ---- Forms ---- */

/* `form`: x stands for a hexadecimal digit, other characters for themselves. */
static bool matches_template(mk_str s, mk_str form)
{
    if (s.len != form.len)
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (form.p[i] == 'x' ? !is_hex_digit(s.p[i]) : s.p[i] != form.p[i])
            return false;
    return true;
}

/* Parses up to four digits. */
static unsigned parse_digits(mk_str s, size_t at, size_t n)
{
    unsigned sum = 0;
    for (size_t i = at; i < at + n; i++)
        sum = sum * 10 + (unsigned)(s.p[i] - '0');
    return sum;
}

static bool is_date(mk_str s)
{
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (s.len != 10 || s.p[4] != '-' || s.p[7] != '-')
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (i != 4 && i != 7 && !mk_char_is_digit(s.p[i]))
            return false;
    unsigned year = parse_digits(s, 0, 4), month = parse_digits(s, 5, 2), day = parse_digits(s, 8, 2);
    unsigned is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1] + (month == 2 ? is_leap : 0);
}

/* ---- All types ---- */

bool mk_router_type_parse(enum mk_router_type type, mk_str segment, struct mk_router_param *out)
{
    out->value = segment;
    out->type = type;
    out->as_uint = 0;
    switch (type) {
    case MK_ROUTER_UUID:
        return matches_template(segment, MK_STR("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"));
    case MK_ROUTER_DATE:
        return is_date(segment);
    case MK_ROUTER_UINT:
        return mk_num_parse(segment, &out->as_uint);
    case MK_ROUTER_INT:
        return mk_num_parse_int(segment, &out->as_int);
    case MK_ROUTER_NUMBER:
        return is_number(segment);
    case MK_ROUTER_HEX:
        return are_all_chars(is_hex_digit, segment);
    case MK_ROUTER_ALPHA:
        return are_all_chars(mk_char_is_alpha, segment);
    case MK_ROUTER_WORD:
        return are_all_chars(is_word_char, segment);
    case MK_ROUTER_SLUG:
        return are_all_chars(is_slug_char, segment);
    case MK_ROUTER_TEXT:
        return segment.len > 0;
    case MK_ROUTER_REST:
        return true;
    }
    return false;
}
