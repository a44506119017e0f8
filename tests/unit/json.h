/* SPDX-License-Identifier: Apache-2.0 */
/* A strict JSON validator (RFC 8259). Independent of cmocka: fuzz targets also use it. */
#ifndef MK_UNIT_JSON_H
#define MK_UNIT_JSON_H

#include "base/str.h"

enum { JSON_DEPTH = 16 };

static inline bool json_value(mk_str *s, int depth);

static inline bool json_take(mk_str *s, const char *text)
{
    mk_str t = mk_str_from_c(text);
    if (!mk_str_starts(*s, t))
        return false;
    *s = mk_str_skip(*s, t.len);
    return true;
}

static inline bool json_digits(mk_str *s)
{
    size_t n = 0;
    while (n < s->len && mk_char_is_digit(s->p[n]))
        n++;
    *s = mk_str_skip(*s, n);
    return n > 0;
}

static inline bool json_number(mk_str *s)
{
    (void)json_take(s, "-");
    bool whole = json_take(s, "0") || json_digits(s);
    if (whole && json_take(s, "."))
        whole = json_digits(s);
    if (whole && (json_take(s, "e") || json_take(s, "E"))) {
        (void)(json_take(s, "+") || json_take(s, "-"));
        whole = json_digits(s);
    }
    return whole;
}

/* Returns the length in bytes of a UTF-8 character that needs no escape, or 0 if the character is invalid. */
static inline size_t json_char(mk_str s)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char c = (unsigned char)s.p[0];
    size_t len = c < 0x80 ? 1 : c >> 5 == 6 ? 2 : c >> 4 == 14 ? 3 : c >> 3 == 30 ? 4 : 0;
    unsigned code = len < 2 ? c : c & (0x7fu >> len);
    if (len == 0 || len > s.len || c < 0x20 || c == '"' || c == '\\')
        return 0;
    for (size_t i = 1; i < len; i++) {
        if (((unsigned char)s.p[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | ((unsigned char)s.p[i] & 0x3f);
    }
    return code < least[len] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : len;
}

static inline bool json_escape(mk_str *s)
{
    static const char *const simple[] = {"\\\"", "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t"};
    for (size_t i = 0; i < MK_LEN(simple); i++)
        if (json_take(s, simple[i]))
            return true;
    if (!json_take(s, "\\u") || s->len < 4)
        return false;
    for (size_t i = 0; i < 4; i++)
        if (mk_char_hex(s->p[i]) < 0)
            return false;
    *s = mk_str_skip(*s, 4);
    return true;
}

static inline bool json_string(mk_str *s)
{
    if (!json_take(s, "\""))
        return false;
    while (s->len && s->p[0] != '"') {
        size_t n = json_char(*s);
        if (n)
            *s = mk_str_skip(*s, n);
        else if (!json_escape(s))
            return false;
    }
    return json_take(s, "\"");
}

static inline bool json_list(mk_str *s, const char *end, bool named, int depth)
{
    if (json_take(s, end))
        return true;
    do {
        if (named && !(json_string(s) && json_take(s, ":")))
            return false;
        if (!json_value(s, depth + 1))
            return false;
    } while (json_take(s, ","));
    return json_take(s, end);
}

static inline bool json_value(mk_str *s, int depth)
{
    if (depth > JSON_DEPTH)
        return false;
    if (json_take(s, "{"))
        return json_list(s, "}", true, depth);
    if (json_take(s, "["))
        return json_list(s, "]", false, depth);
    if (s->len && s->p[0] == '"')
        return json_string(s);
    return json_take(s, "true") || json_take(s, "false") || json_take(s, "null") || json_number(s);
}

/* Returns whether the text is a single object without whitespace around or inside it. */
static inline bool json_is_object(mk_str s)
{
    return s.len && s.p[0] == '{' && json_value(&s, 0) && s.len == 0;
}

#endif
