/* SPDX-License-Identifier: Apache-2.0 */
#include "text/json_lex.h"

#include <errno.h>

#include "monkey/utf8.h"

enum { SIZE_DEFAULT = 1 << 20, DEPTH_DEFAULT = 32, ITEMS_DEFAULT = 65536, MESSAGE_MAX = 256 };

/* ---- Errors ---- */

/* Columns count characters, as editors do, from 1. */
static void set_line_and_column(struct duda_validation_error *error, mk_str before)
{
    size_t last = mk_str_find_last(before, '\n');
    error->line = 1;
    for (size_t i = 0; i < before.len; i++)
        error->line += before.p[i] == '\n';
    error->column = 1 + mk_utf8_count(last == MK_STR_NONE ? before : mk_str_skip(before, last + 1));
}

static bool add_error(struct duda_json_cursor *c, size_t at, const struct duda_field_path *path, mk_str text)
{
    if (c->errors->n == DUDA_VALIDATION_ERRORS_MAX)
        return false;
    bool added = duda_validation_errors_add(c->errors, c->memory, path, text);
    set_line_and_column(&c->errors->items[c->errors->n - 1], mk_str_first(c->text, at));
    return added;
}

/* Puts the fatal error first: the others may be mere consequences of it, as in truncated text. */
static void move_last_error_first(struct duda_validation_errors *errors)
{
    struct duda_validation_error last = errors->items[errors->n - 1];
    memmove(errors->items + 1, errors->items, (errors->n - 1) * sizeof last);
    errors->items[0] = last;
}

bool duda_json_fail(struct duda_json_cursor *c, int error, size_t at, const char *fmt, ...)
{
    char buf[MESSAGE_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    va_list args;
    va_start(args, fmt);
    mk_buf_addv(&text, fmt, args);
    va_end(args);
    c->error = error;
    c->errors->n -= c->errors->n == DUDA_VALIDATION_ERRORS_MAX;
    (void)add_error(c, at, NULL, mk_buf_str(&text));
    move_last_error_first(c->errors);
    return false;
}

bool duda_json_add_error(struct duda_json_cursor *c, size_t at, const struct duda_field_path *path,
                         mk_str text)
{
    c->error = -EINVAL;
    return add_error(c, at, path, text);
}

static bool fail_no_memory(struct duda_json_cursor *c)
{
    c->error = -ENOMEM;
    return false;
}

/* ---- Between values ---- */

bool duda_json_cursor_init(struct duda_json_cursor *c, mk_str text, const struct mk_allocator *memory,
                           const struct duda_json_limits *limits, struct duda_validation_errors *errors)
{
    static const struct duda_json_limits none;
    const struct duda_json_limits *l = limits ? limits : &none;
    size_t size = l->size ? l->size : SIZE_DEFAULT, depth = l->depth ? l->depth : DEPTH_DEFAULT;
    *c = (struct duda_json_cursor){.text = text,
                                   .memory = memory,
                                   .depth_max = depth < DUDA_JSON_DEPTH_MAX ? depth : DUDA_JSON_DEPTH_MAX,
                                   .items_left = l->items ? l->items : ITEMS_DEFAULT,
                                   .errors = errors};
    errors->n = 0;
    return text.len <= size ||
           duda_json_fail(c, -EMSGSIZE, 0, "the text has %zu bytes; at most %zu are allowed", text.len, size);
}

char duda_json_peek_char(struct duda_json_cursor *c)
{
    for (; c->at < c->text.len; c->at++) {
        char next = c->text.p[c->at];
        if (next != ' ' && next != '\n' && next != '\r' && next != '\t')
            return next;
    }
    return '\0';
}

bool duda_json_accept_char(struct duda_json_cursor *c, char expected)
{
    bool is_next = duda_json_peek_char(c) == expected && c->at < c->text.len;
    c->at += is_next;
    return is_next;
}

/* Reports the text that was found in place of the expected token. */
static bool fail_unexpected(struct duda_json_cursor *c, const char *expectation)
{
    if (c->at >= c->text.len)
        return duda_json_fail(c, -EBADMSG, c->at, "expected %s, but the text ends", expectation);
    unsigned char next = (unsigned char)c->text.p[c->at];
    if (next > 0x20 && next < 0x7f)
        return duda_json_fail(c, -EBADMSG, c->at, "expected %s, not `%c`", expectation, (int)next);
    return duda_json_fail(c, -EBADMSG, c->at, "expected %s, not the byte 0x%02x", expectation, next);
}

bool duda_json_expect_char(struct duda_json_cursor *c, char expected, const char *expectation)
{
    return duda_json_accept_char(c, expected) || fail_unexpected(c, expectation);
}

bool duda_json_next_element(struct duda_json_cursor *c, char close)
{
    if (duda_json_accept_char(c, ','))
        return true;
    if (!duda_json_accept_char(c, close))
        (void)fail_unexpected(c, close == ']' ? "`,` or `]`" : "`,` or `}`");
    return false;
}

bool duda_json_expect_end(struct duda_json_cursor *c)
{
    (void)duda_json_peek_char(c);
    return c->at == c->text.len || fail_unexpected(c, "the end of the text");
}

bool duda_json_enter_nested(struct duda_json_cursor *c)
{
    if (c->depth == c->depth_max)
        return duda_json_fail(c, -EMSGSIZE, c->at - 1, "lists and objects are nested more than %zu deep",
                              c->depth_max);
    c->depth++;
    return true;
}

void duda_json_leave_nested(struct duda_json_cursor *c)
{
    c->depth--;
}

bool duda_json_count_element(struct duda_json_cursor *c)
{
    if (c->items_left == 0)
        return duda_json_fail(c, -EMSGSIZE, c->at, "the text has too many elements");
    c->items_left--;
    return true;
}

/* ---- Strings ---- */

/* The value of the four hex digits after "\u", or -1. */
static int32_t parse_four_hex_digits(mk_str s)
{
    int32_t n = 0;
    if (s.len < 4)
        return -1;
    for (size_t i = 0; i < 4; i++) {
        int digit = mk_char_hex(s.p[i]);
        if (digit < 0)
            return -1;
        n = n * 16 + digit;
    }
    return n;
}

/* Decodes the escape at `s`, after the backslash; returns its length, or 0. */
static size_t decode_unicode_escape(mk_str s, char out[4], size_t *out_len)
{
    int32_t high = parse_four_hex_digits(mk_str_skip(s, 1));
    if (high < 0 || (high >= 0xdc00 && high < 0xe000))
        return 0;
    if (high < 0xd800 || high >= 0xe000) {
        *out_len = mk_utf8_encode(out, (uint32_t)high);
        return 5;
    }
    int32_t low =
        mk_str_starts(mk_str_skip(s, 5), MK_STR("\\u")) ? parse_four_hex_digits(mk_str_skip(s, 7)) : -1;
    if (low < 0xdc00 || low >= 0xe000)
        return 0;
    *out_len = mk_utf8_encode(out, (uint32_t)(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)));
    return 11;
}

static size_t decode_escape(mk_str s, char out[4], size_t *out_len)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (s.len && s.p[0] == 'u')
        return decode_unicode_escape(s, out, out_len);
    const char *found = s.len && s.p[0] ? strchr(from, s.p[0]) : NULL;
    if (!found)
        return 0;
    out[0] = to[found - from];
    *out_len = 1;
    return 1;
}

/* `raw` is the text between the quotes, valid except for its escapes. The result is never longer. */
static bool unescape_string(struct duda_json_cursor *c, mk_str raw, mk_str *out)
{
    char *buf = (char *)c->memory->alloc(c->memory->ctx, raw.len + 1);
    size_t len = 0;
    if (!buf)
        return fail_no_memory(c);
    for (size_t i = 0; i < raw.len;) {
        if (raw.p[i] != '\\') {
            buf[len++] = raw.p[i++];
            continue;
        }
        char character[4];
        size_t n = 0, used = decode_escape(mk_str_skip(raw, i + 1), character, &n);
        if (used == 0)
            return duda_json_fail(c, -EBADMSG, (size_t)(raw.p - c->text.p) + i, "invalid escape sequence");
        memcpy(buf + len, character, n);
        len += n;
        i += 1 + used;
    }
    buf[len] = '\0';
    *out = mk_str_of(buf, len);
    return true;
}

/* The length of the string character at the start of `s`: 0 if it is not allowed. */
static size_t string_char_len(mk_str s)
{
    if ((unsigned char)s.p[0] < 0x20)
        return 0;
    if (s.p[0] == '\\')
        return s.len > 1 ? 2 : 1;
    return mk_utf8_char_len(s);
}

bool duda_json_lex_string(struct duda_json_cursor *c, mk_str *out)
{
    if (!duda_json_expect_char(c, '"', "a string"))
        return false;
    size_t begin = c->at;
    bool has_escapes = false;
    while (c->at < c->text.len && c->text.p[c->at] != '"') {
        mk_str rest = mk_str_skip(c->text, c->at);
        size_t len = string_char_len(rest);
        if (len == 0)
            return duda_json_fail(c, -EBADMSG, c->at,
                                  (unsigned char)rest.p[0] < 0x20
                                      ? "a string must not contain control characters: use an escape sequence"
                                      : "invalid UTF-8");
        has_escapes |= rest.p[0] == '\\';
        c->at += len;
    }
    if (c->at >= c->text.len)
        return duda_json_fail(c, -EBADMSG, begin - 1, "unterminated string");
    mk_str raw = mk_str_of(c->text.p + begin, c->at - begin);
    c->at++;
    *out = raw;
    return !has_escapes || unescape_string(c, raw, out);
}

bool duda_json_lex_string_copy(struct duda_json_cursor *c, mk_str *out)
{
    if (!duda_json_lex_string(c, out))
        return false;
    bool is_part = out->p >= c->text.p && out->p <= c->text.p + c->text.len;
    return !is_part || unescape_string(c, *out, out);
}

/* Rejects a name with a NUL, because a program that reads the name as a C string would see a different
 * one. */
bool duda_json_lex_name(struct duda_json_cursor *c, mk_str *out)
{
    (void)duda_json_peek_char(c);
    size_t begin = c->at;
    if (!duda_json_lex_string(c, out))
        return false;
    return !out->len || !memchr(out->p, 0, out->len) ||
           duda_json_fail(c, -EBADMSG, begin, "a name must not contain NUL");
}

/* ---- Other values ---- */

bool duda_json_lex_number(struct duda_json_cursor *c, mk_str *out, bool *is_integer)
{
    mk_str rest = mk_str_skip(c->text, c->at);
    size_t len = duda_number_len(rest, is_integer);
    mk_str after = mk_str_skip(rest, len);
    if (len == 0 || (after.len && (mk_char_is_digit(after.p[0]) || after.p[0] == '.')))
        return duda_json_fail(c, -EBADMSG, c->at, "this is not a number");
    *out = mk_str_first(rest, len);
    c->at += len;
    return true;
}

bool duda_json_lex_literal(struct duda_json_cursor *c, mk_str word)
{
    if (!mk_str_starts(mk_str_skip(c->text, c->at), word))
        return false;
    c->at += word.len;
    return true;
}

static bool skip_scalar(struct duda_json_cursor *c)
{
    mk_str ignored;
    bool is_integer;
    char next = duda_json_peek_char(c);
    if (next == '"')
        return duda_json_lex_string(c, &ignored);
    if (next == '-' || mk_char_is_digit(next))
        return duda_json_lex_number(c, &ignored, &is_integer);
    return duda_json_lex_literal(c, MK_STR("true")) || duda_json_lex_literal(c, MK_STR("false")) ||
           duda_json_lex_literal(c, MK_STR("null")) || fail_unexpected(c, "a value");
}

static bool skip_name(struct duda_json_cursor *c)
{
    mk_str name;
    return duda_json_lex_name(c, &name) && duda_json_expect_char(c, ':', "`:`");
}

/* Not recursive: `objects` has one bit for each open level. */
bool duda_json_skip_value(struct duda_json_cursor *c, mk_str *out)
{
    uint64_t objects = 0;
    size_t outside = c->depth;
    (void)duda_json_peek_char(c);
    size_t begin = c->at;
    do {
        char next = duda_json_peek_char(c);
        if (next == '[' || next == '{') {
            c->at++;
            if (!duda_json_enter_nested(c))
                return false;
            objects = objects << 1 | (next == '{');
            if (!duda_json_accept_char(c, next == '{' ? '}' : ']')) {
                if (!duda_json_count_element(c) || (next == '{' && !skip_name(c)))
                    return false;
                continue;
            }
            duda_json_leave_nested(c);
            objects >>= 1;
        } else if (!skip_scalar(c)) {
            return false;
        }
        while (c->depth > outside && !duda_json_next_element(c, objects & 1 ? '}' : ']')) {
            if (c->error && c->error != -EINVAL)
                return false;
            duda_json_leave_nested(c);
            objects >>= 1;
        }
        if (c->depth > outside && (!duda_json_count_element(c) || (objects & 1 && !skip_name(c))))
            return false;
    } while (c->depth > outside);
    *out = mk_str_of(c->text.p + begin, c->at - begin);
    return true;
}
