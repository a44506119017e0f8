/* SPDX-License-Identifier: Apache-2.0 */
#include "log_json.h"

#include <monkey/text.h>
#include <monkey/utf8.h>

/* Returns the length of the escape sequence after a backslash; 0 if it is invalid. */
static size_t escape_len(mk_str text)
{
    if (!text.len)
        return 0;
    if (text.p[0] != 'u')
        return memchr("\"\\/bfnrt", text.p[0], 8) ? 1 : 0;
    for (size_t i = 1; i < 5; i++)
        if (i >= text.len || !strchr("0123456789abcdefABCDEF", text.p[i]) || !text.p[i])
            return 0;
    return 5;
}

/* Returns the length of the string with its quotes; 0 if it is invalid. */
static size_t string_len(mk_str text)
{
    uint32_t c;
    size_t i = 1;
    if (!text.len || text.p[0] != '"')
        return 0;
    while (i < text.len && text.p[i] != '"') {
        mk_str rest = mk_str_skip(text, i);
        bool is_escape = text.p[i] == '\\';
        size_t n = is_escape                        ? escape_len(mk_str_skip(rest, 1))
                   : (unsigned char)text.p[i] < ' ' ? 0
                                                    : mk_utf8_decode(rest, &c);
        if (!n)
            return 0;
        i += n + is_escape;
    }
    return i < text.len ? i + 1 : 0;
}

static size_t count_digits(mk_str text)
{
    size_t n = 0;
    while (n < text.len && mk_char_is_digit(text.p[n]))
        n++;
    return n;
}

/* Returns the length of a JSON number; 0 if it is invalid. */
static size_t number_len(mk_str text)
{
    size_t i = mk_str_starts(text, MK_STR("-")), n = count_digits(mk_str_skip(text, i));
    if (!n || (n > 1 && text.p[i] == '0'))
        return 0;
    i += n;
    if (i < text.len && text.p[i] == '.') {
        if (!(n = count_digits(mk_str_skip(text, i + 1))))
            return 0;
        i += 1 + n;
    }
    if (i < text.len && (text.p[i] == 'e' || text.p[i] == 'E')) {
        size_t sign = i + 1 < text.len && (text.p[i + 1] == '-' || text.p[i + 1] == '+');
        if (!(n = count_digits(mk_str_skip(text, i + 1 + sign))))
            return 0;
        i += 1 + sign + n;
    }
    return i;
}

static size_t value_len(mk_str text)
{
    static const mk_str words[] = {MK_STR_INIT("true"), MK_STR_INIT("false"), MK_STR_INIT("null")};
    for (size_t i = 0; i < MK_LEN(words); i++)
        if (mk_str_starts(text, words[i]))
            return words[i].len;
    return text.len && text.p[0] == '"' ? string_len(text) : number_len(text);
}

static bool is_plain_string(mk_str value)
{
    return value.len && value.p[0] == '"';
}

/* A name with escapes could be another spelling of `pid`, so it is rejected. */
static bool add_member(mk_str name, mk_str value, struct isolate_log_json *out, struct mk_buf *members)
{
    if (mk_str_find(name, '\\') != MK_STR_NONE)
        return false;
    if (mk_str_eq(name, MK_STR("\"level\"")) && is_plain_string(value)) {
        out->level = mk_str_of(value.p + 1, value.len - 2);
    } else if (mk_str_eq(name, MK_STR("\"pid\""))) {
        out->pid = value;
    } else if (mk_str_eq(name, MK_STR("\"message\"")) && is_plain_string(value)) {
        out->message = value;
    } else if (!mk_str_eq(name, MK_STR("\"time\"")) && !mk_str_eq(name, MK_STR("\"isolate\"")) &&
               !mk_str_eq(name, MK_STR("\"level\"")) && !mk_str_eq(name, MK_STR("\"message\""))) {
        mk_buf_add_char(members, ',');
        mk_buf_add(members, name);
        mk_buf_add_char(members, ':');
        mk_buf_add(members, value);
    }
    return true;
}

bool isolate_log_json_parse(mk_str line, struct isolate_log_json *out, struct mk_buf *members)
{
    *out = (struct isolate_log_json){0};
    if (!mk_str_starts(line, MK_STR("{")))
        return false;
    do {
        line = mk_str_skip(line, 1);
        size_t n = string_len(line);
        mk_str name = mk_str_first(line, n);
        line = mk_str_skip(line, n);
        if (!n || !mk_str_starts(line, MK_STR(":")))
            return false;
        line = mk_str_skip(line, 1);
        n = value_len(line);
        if (!n || !add_member(name, mk_str_first(line, n), out, members))
            return false;
        line = mk_str_skip(line, n);
    } while (mk_str_starts(line, MK_STR(",")));
    return mk_str_eq(line, MK_STR("}")) && out->message.p && !members->failed;
}
