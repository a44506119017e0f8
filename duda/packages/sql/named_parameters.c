/* SPDX-License-Identifier: Apache-2.0 */
#include "named_parameters.h"

#include <errno.h>

static bool is_name_start(char c)
{
    return mk_char_is_alpha(c) || c == '_';
}

static bool is_name_char(char c)
{
    return is_name_start(c) || mk_char_is_digit(c);
}

/* Identifiers may contain non-ASCII letters, and `$`. */
static bool is_identifier_char(char c)
{
    return is_name_char(c) || c == '$' || (unsigned char)c >= 0x80;
}

/* Returns the offset after the next `what`; text.len if there is none. */
static size_t skip_past(mk_str text, size_t at, mk_str what)
{
    const char *found = at < text.len ? memmem(text.p + at, text.len - at, what.p, what.len) : NULL;
    return found ? (size_t)(found - text.p) + what.len : text.len;
}

/* Returns the offset after a quoted text. A doubled quote begins another quoted text, which has the same
 * effect as a quote in this one. */
static size_t skip_quoted(mk_str text, size_t at, bool has_escapes)
{
    char quote = text.p[at];
    for (at++; at < text.len && text.p[at] != quote; at++)
        at += has_escapes && text.p[at] == '\\';
    return at < text.len ? at + 1 : text.len;
}

static size_t skip_block_comment(mk_str text, size_t at)
{
    unsigned depth = 0;
    for (; at + 1 < text.len; at++) {
        if (text.p[at] == '/' && text.p[at + 1] == '*') {
            depth++;
            at++;
        } else if (text.p[at] == '*' && text.p[at + 1] == '/') {
            at++;
            if (--depth == 0)
                return at + 1;
        }
    }
    return text.len;
}

static size_t skip_line_comment(mk_str text, size_t at)
{
    while (at < text.len && text.p[at] != '\n')
        at++;
    return at;
}

/* Returns the offset after a dollar-quoted string, `$tag$...$tag$`; `at` if there is none. */
static size_t skip_dollar_quoted(mk_str text, size_t at)
{
    size_t end = at + 1;
    while (end < text.len && is_name_char(text.p[end]))
        end++;
    if (end >= text.len || text.p[end] != '$' || mk_char_is_digit(text.p[at + 1]))
        return at;
    mk_str tag = mk_str_of(text.p + at, end + 1 - at);
    return skip_past(text, end + 1, tag);
}

/* Returns the offset after an identifier, a number, or a literal with a prefix: E'...' has escapes. */
static size_t skip_word(mk_str text, size_t at)
{
    size_t end = at;
    while (end < text.len && is_identifier_char(text.p[end]))
        end++;
    bool has_escapes = end == at + 1 && (text.p[at] == 'e' || text.p[at] == 'E');
    return end < text.len && text.p[end] == '\'' ? skip_quoted(text, end, has_escapes) : end;
}

static char char_after(mk_str text, size_t at)
{
    return at + 1 < text.len ? text.p[at + 1] : '\0';
}

/* Returns the offset after the token at `at`, which is not a parameter. */
static size_t skip_token(mk_str text, size_t at)
{
    char c = text.p[at], next = char_after(text, at);
    if (c == '\'' || c == '"')
        return skip_quoted(text, at, false);
    if (c == '-' && next == '-')
        return skip_line_comment(text, at);
    if (c == '/' && next == '*')
        return skip_block_comment(text, at);
    if (c == ':' && next == ':')
        return at + 2;
    return is_identifier_char(c) && c != '$' ? skip_word(text, at) : at + 1;
}

/* Returns the number of the name, from 1; 0 if there is no space for it. */
static size_t number_of_name(struct sql_names *names, mk_str name)
{
    for (size_t i = 0; i < names->n; i++)
        if (mk_str_eq(names->at[i], name))
            return i + 1;
    if (names->n == names->max)
        return 0;
    names->at[names->n++] = name;
    return names->n;
}

/* Names of nested members contain dots: `:home.street`. */
static size_t name_end(mk_str text, size_t at)
{
    while (at < text.len &&
           (is_name_char(text.p[at]) || (text.p[at] == '.' && is_name_start(char_after(text, at)))))
        at++;
    return at;
}

int sql_named_parameters_replace(struct mk_buf *out, mk_str text, struct sql_names *names)
{
    names->n = 0;
    for (size_t at = 0, end; at < text.len; at = end) {
        char c = text.p[at];
        end = at;
        if (c == ':' && is_name_start(char_after(text, at))) {
            end = name_end(text, at + 1);
            size_t number = number_of_name(names, mk_str_of(text.p + at + 1, end - at - 1));
            if (!number)
                return -E2BIG;
            mk_buf_addf(out, "$%zu", number);
            continue;
        }
        if (c == '$')
            end = skip_dollar_quoted(text, at);
        if (c == '$' && end == at && mk_char_is_digit(char_after(text, at)))
            return -EINVAL;
        end = end > at ? end : skip_token(text, at);
        mk_buf_add(out, mk_str_of(text.p + at, end - at));
    }
    return 0;
}
