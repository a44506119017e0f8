/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <monkey/buf.h>
#include <monkey/json_reader.h>
#include <monkey/utf8.h>

#include "readers/json_number.h"

enum { SIZE_DEFAULT = 1 << 20, DEPTH_DEFAULT = 32, ITEMS_DEFAULT = 65536 };

/* ---- Errors ---- */

void mk_json_position(mk_str text, size_t offset, size_t *line, size_t *column)
{
    mk_str before = mk_str_first(text, offset);
    size_t last = mk_str_find_last(before, '\n');
    *line = 1;
    for (size_t i = 0; i < before.len; i++)
        *line += before.p[i] == '\n';
    *column = 1 + mk_utf8_count(last == MK_STR_NONE ? before : mk_str_skip(before, last + 1));
}

bool mk_json_reader_fail(struct mk_json_reader *c, int error, size_t at, const char *fmt, ...)
{
    struct mk_json_error *info = c->info;
    struct mk_buf text = mk_buf_fixed(info->message, sizeof info->message - 1);
    va_list args;
    va_start(args, fmt);
    mk_buf_addv(&text, fmt, args);
    va_end(args);
    info->message[text.len] = '\0';
    info->offset = at;
    mk_json_position(c->text, at, &info->line, &info->column);
    c->error = error;
    return false;
}

static bool fail_no_memory(struct mk_json_reader *c)
{
    c->error = -ENOMEM;
    return false;
}

/* ---- Between values ---- */

bool mk_json_reader_init(struct mk_json_reader *c, mk_str text, const struct mk_allocator *memory,
                         const struct mk_json_limits *limits, struct mk_json_error *info)
{
    static const struct mk_json_limits none;
    const struct mk_json_limits *l = limits ? limits : &none;
    size_t size = l->size ? l->size : SIZE_DEFAULT, depth = l->depth ? l->depth : DEPTH_DEFAULT;
    *info = (struct mk_json_error){.offset = 0};
    *c = (struct mk_json_reader){.text = text,
                                 .memory = memory,
                                 .depth_max = depth < MK_JSON_DEPTH_MAX ? depth : MK_JSON_DEPTH_MAX,
                                 .items_left = l->items ? l->items : ITEMS_DEFAULT,
                                 .info = info};
    return text.len <= size ||
           mk_json_reader_fail(c, -EMSGSIZE, 0, "the text has %zu bytes; at most %zu are allowed", text.len,
                               size);
}

char mk_json_reader_peek(struct mk_json_reader *c)
{
    for (; c->at < c->text.len; c->at++) {
        char next = c->text.p[c->at];
        if (next != ' ' && next != '\n' && next != '\r' && next != '\t')
            return next;
    }
    return '\0';
}

bool mk_json_reader_accept(struct mk_json_reader *c, char expected)
{
    bool is_next = mk_json_reader_peek(c) == expected && c->at < c->text.len;
    c->at += is_next;
    return is_next;
}

/* Reports the text that was found in place of the expected token. */
static bool fail_unexpected(struct mk_json_reader *c, const char *expectation)
{
    if (c->at >= c->text.len)
        return mk_json_reader_fail(c, -EBADMSG, c->at, "expected %s, but the text ends", expectation);
    unsigned char next = (unsigned char)c->text.p[c->at];
    if (next > 0x20 && next < 0x7f)
        return mk_json_reader_fail(c, -EBADMSG, c->at, "expected %s, not `%c`", expectation, (int)next);
    return mk_json_reader_fail(c, -EBADMSG, c->at, "expected %s, not the byte 0x%02x", expectation, next);
}

bool mk_json_reader_expect(struct mk_json_reader *c, char expected, const char *expectation)
{
    return mk_json_reader_accept(c, expected) || fail_unexpected(c, expectation);
}

bool mk_json_reader_next_element(struct mk_json_reader *c, char close)
{
    if (mk_json_reader_accept(c, ','))
        return true;
    if (!mk_json_reader_accept(c, close))
        (void)fail_unexpected(c, close == ']' ? "`,` or `]`" : "`,` or `}`");
    return false;
}

bool mk_json_reader_expect_end(struct mk_json_reader *c)
{
    (void)mk_json_reader_peek(c);
    return c->at == c->text.len || fail_unexpected(c, "the end of the text");
}

bool mk_json_reader_enter(struct mk_json_reader *c)
{
    if (c->depth == c->depth_max)
        return mk_json_reader_fail(c, -EMSGSIZE, c->at - 1, "lists and objects are nested more than %zu deep",
                                   c->depth_max);
    c->depth++;
    return true;
}

void mk_json_reader_leave(struct mk_json_reader *c)
{
    c->depth--;
}

bool mk_json_reader_count(struct mk_json_reader *c)
{
    if (c->items_left == 0)
        return mk_json_reader_fail(c, -EMSGSIZE, c->at, "the text has too many elements");
    c->items_left--;
    return true;
}

/* ---- Strings ---- */

/* Returns the value of the four hex digits after "\u", or -1. */
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

/* Decodes a Unicode escape, or two escapes that form a surrogate pair, at `s`, after the first backslash.
 * Returns the length of the decoded part of `s`; 0: invalid. */
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

/* Decodes the escapes of `raw`, the text between the quotes, whose other characters have been validated. The
 * result is never longer. */
static bool unescape_string(struct mk_json_reader *c, mk_str raw, mk_str *out)
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
            return mk_json_reader_fail(c, -EBADMSG, (size_t)(raw.p - c->text.p) + i,
                                       "invalid escape sequence");
        memcpy(buf + len, character, n);
        len += n;
        i += 1 + used;
    }
    buf[len] = '\0';
    *out = mk_str_of(buf, len);
    return true;
}

/* Returns the length of the character at the start of `s`, where a backslash and the byte after it count as
 * one; 0: the character is not allowed in a string. */
static size_t string_char_len(mk_str s)
{
    unsigned char first = (unsigned char)s.p[0];
    if (first < 0x20)
        return 0;
    if (first == '\\')
        return s.len > 1 ? 2 : 1;
    return first < 0x80 ? 1 : mk_utf8_char_len(s);
}

bool mk_json_reader_string(struct mk_json_reader *c, mk_str *out)
{
    if (!mk_json_reader_expect(c, '"', "a string"))
        return false;
    size_t begin = c->at;
    bool has_escapes = false;
    while (c->at < c->text.len && c->text.p[c->at] != '"') {
        mk_str rest = mk_str_skip(c->text, c->at);
        size_t len = string_char_len(rest);
        if (len == 0)
            return mk_json_reader_fail(
                c, -EBADMSG, c->at,
                (unsigned char)rest.p[0] < 0x20
                    ? "a string must not contain control characters: use an escape sequence"
                    : "invalid UTF-8");
        has_escapes |= rest.p[0] == '\\';
        c->at += len;
    }
    if (c->at >= c->text.len)
        return mk_json_reader_fail(c, -EBADMSG, begin - 1, "unterminated string");
    mk_str raw = mk_str_of(c->text.p + begin, c->at - begin);
    c->at++;
    *out = raw;
    return !has_escapes || unescape_string(c, raw, out);
}

bool mk_json_reader_string_copy(struct mk_json_reader *c, mk_str *out)
{
    if (!mk_json_reader_string(c, out))
        return false;
    bool is_part = out->p >= c->text.p && out->p <= c->text.p + c->text.len;
    return !is_part || unescape_string(c, *out, out);
}

/* Rejects a name with a NUL, because a program that reads the name as a C string would see a different
 * one. */
bool mk_json_reader_name(struct mk_json_reader *c, mk_str *out)
{
    (void)mk_json_reader_peek(c);
    size_t begin = c->at;
    if (!mk_json_reader_string(c, out))
        return false;
    return !out->len || !memchr(out->p, 0, out->len) ||
           mk_json_reader_fail(c, -EBADMSG, begin, "a name must not contain NUL");
}

/* ---- Other values ---- */

bool mk_json_reader_number(struct mk_json_reader *c, mk_str *out, bool *is_integer)
{
    (void)mk_json_reader_peek(c);
    mk_str rest = mk_str_skip(c->text, c->at);
    size_t len = mk_json_number_len(rest, is_integer);
    mk_str after = mk_str_skip(rest, len);
    if (len == 0 || (after.len && (mk_char_is_digit(after.p[0]) || after.p[0] == '.')))
        return mk_json_reader_fail(c, -EBADMSG, c->at, "this is not a number");
    *out = mk_str_first(rest, len);
    c->at += len;
    return true;
}

bool mk_json_reader_literal(struct mk_json_reader *c, mk_str word)
{
    (void)mk_json_reader_peek(c);
    if (!mk_str_starts(mk_str_skip(c->text, c->at), word))
        return false;
    c->at += word.len;
    return true;
}

static bool skip_scalar(struct mk_json_reader *c)
{
    mk_str ignored;
    bool is_integer;
    char next = mk_json_reader_peek(c);
    if (next == '"')
        return mk_json_reader_string(c, &ignored);
    if (next == '-' || mk_char_is_digit(next))
        return mk_json_reader_number(c, &ignored, &is_integer);
    return mk_json_reader_literal(c, MK_STR("true")) || mk_json_reader_literal(c, MK_STR("false")) ||
           mk_json_reader_literal(c, MK_STR("null")) || fail_unexpected(c, "a value");
}

static bool skip_name(struct mk_json_reader *c)
{
    mk_str name;
    return mk_json_reader_name(c, &name) && mk_json_reader_expect(c, ':', "`:`");
}

/* Not recursive: `objects` has one bit for each open level, which is 1 for an object and 0 for a list. */
bool mk_json_reader_skip(struct mk_json_reader *c, mk_str *out)
{
    uint64_t objects = 0;
    size_t outside = c->depth;
    (void)mk_json_reader_peek(c);
    size_t begin = c->at;
    do {
        char next = mk_json_reader_peek(c);
        if (next == '[' || next == '{') {
            c->at++;
            if (!mk_json_reader_enter(c))
                return false;
            objects = objects << 1 | (next == '{');
            if (!mk_json_reader_accept(c, next == '{' ? '}' : ']')) {
                if (!mk_json_reader_count(c) || (next == '{' && !skip_name(c)))
                    return false;
                continue;
            }
            mk_json_reader_leave(c);
            objects >>= 1;
        } else if (!skip_scalar(c)) {
            return false;
        }
        while (c->depth > outside && !mk_json_reader_next_element(c, objects & 1 ? '}' : ']')) {
            if (c->error)
                return false;
            mk_json_reader_leave(c);
            objects >>= 1;
        }
        if (c->depth > outside && (!mk_json_reader_count(c) || (objects & 1 && !skip_name(c))))
            return false;
    } while (c->depth > outside);
    *out = mk_str_of(c->text.p + begin, c->at - begin);
    return true;
}
