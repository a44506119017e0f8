/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/codec.h"
#include "base/num.h"

/* Writes a complete value, with a comma before it if another value precedes it. */
static void write_value(struct mk_json_writer *w, mk_str json)
{
    if (w->comma)
        mk_buf_add_char(w->out, ',');
    mk_buf_add(w->out, json);
    w->comma = true;
}

/* Like mk_buf_reserve(), but inline. */
static inline bool reserve_inline(struct mk_buf *out, size_t more)
{
    return (!out->failed && out->cap - out->len >= more) || mk_buf_reserve(out, more);
}

/* ---- Structure ---- */

static inline void open_bracket(struct mk_json_writer *w, char bracket)
{
    struct mk_buf *out = w->out;
    size_t comma = w->comma;
    if (!reserve_inline(out, comma + 1))
        return;
    char *at = out->p + out->len;
    out->len += comma + 1;
    w->comma = false;
    at[0] = ',';
    at[comma] = bracket;
}

static inline void close_bracket(struct mk_json_writer *w, char bracket)
{
    struct mk_buf *out = w->out;
    if (reserve_inline(out, 1))
        out->p[out->len++] = bracket;
    w->comma = true;
}

void mk_json_begin_object(struct mk_json_writer *w)
{
    open_bracket(w, '{');
}

void mk_json_end_object(struct mk_json_writer *w)
{
    close_bracket(w, '}');
}

void mk_json_begin_array(struct mk_json_writer *w)
{
    open_bracket(w, '[');
}

void mk_json_end_array(struct mk_json_writer *w)
{
    close_bracket(w, ']');
}

void mk_json_newline(struct mk_json_writer *w)
{
    open_bracket(w, '\n');
}

/* ---- Strings and keys ---- */

void mk_json_begin_string(struct mk_json_writer *w)
{
    open_bracket(w, '"');
}

void mk_json_end_string(struct mk_json_writer *w)
{
    close_bracket(w, '"');
}

/* Copies the longest prefix that needs no escaping with one memcpy(): nearly always the whole string. */
static void write_quoted(struct mk_json_writer *w, mk_str s)
{
    struct mk_buf *out = w->out;
    size_t comma = w->comma, plain = mk_codec_plain_len(s);
    if (!reserve_inline(out, comma + plain + 2))
        return;
    char *at = out->p + out->len;
    out->len += comma + 1 + plain;
    w->comma = true;
    at[0] = ',';
    at[comma] = '"';
    if (plain)
        memcpy(at + comma + 1, s.p, plain);
    if (plain < s.len)
        mk_json_escape_to(out, mk_str_skip(s, plain), SIZE_MAX);
    mk_buf_put(out, MK_STR("\""));
}

struct mk_json_writer *mk_json_key_str(struct mk_json_writer *w, mk_str key)
{
    write_quoted(w, key);
    mk_buf_put(w->out, MK_STR(":"));
    w->comma = false;
    return w;
}

struct mk_json_writer *mk_json_key(struct mk_json_writer *w, const char *key)
{
    return mk_json_key_str(w, mk_str_from_c(key));
}

void mk_json_string(struct mk_json_writer *w, mk_str s)
{
    write_quoted(w, s);
}

void mk_json_cstr(struct mk_json_writer *w, const char *s)
{
    if (s)
        write_quoted(w, mk_str_from_c(s));
    else
        mk_json_null(w);
}

/* ---- Other values ---- */

void mk_json_raw(struct mk_json_writer *w, mk_str json)
{
    write_value(w, json);
}

void mk_json_null(struct mk_json_writer *w)
{
    write_value(w, MK_STR("null"));
}

void mk_json_bool(struct mk_json_writer *w, bool b)
{
    write_value(w, b ? MK_STR("true") : MK_STR("false"));
}

static inline void write_integer(struct mk_json_writer *w, uint64_t n, bool is_negative)
{
    struct mk_buf *out = w->out;
    size_t comma = w->comma, len = comma + is_negative + mk_num_len(n);
    if (!reserve_inline(out, len))
        return;
    char *at = out->p + out->len;
    out->len += len;
    w->comma = true;
    at[0] = ',';
    at[comma] = '-';
    mk_num_write_before(at + len, n);
}

void mk_json_uint(struct mk_json_writer *w, uint64_t n)
{
    write_integer(w, n, false);
}

void mk_json_int(struct mk_json_writer *w, int64_t n)
{
    write_integer(w, n < 0 ? ~(uint64_t)n + 1 : (uint64_t)n, n < 0);
}

/* ---- Doubles ---- */

enum { NUMBER_MAX = 32, FIXED_MAX = 340, SIGNIFICANT = 15, EXACT = 17, DECIMALS = 6, DECIMALS_MAX = 20 };

/* A program that embeds the server may have set a locale with a decimal comma. */
static void normalize_decimal_point(char *s)
{
    for (; *s; s++)
        if (!mk_char_is_digit(*s) && !strchr("+-e", *s))
            *s = '.';
}

void mk_json_fixed(struct mk_json_writer *w, double n, unsigned decimals)
{
    char text[FIXED_MAX];
    if (!isfinite(n)) {
        mk_json_null(w);
        return;
    }
    (void)snprintf(text, sizeof text, "%.*f", (int)mk_min(decimals, DECIMALS_MAX), n);
    normalize_decimal_point(text);
    write_value(w, mk_str_from_c(text));
}

/* Writes a number with few digits, such as a price, without printf(3). A decimal of at most 15 digits
 * that rounds to the double is the shortest form of that double. */
static bool write_short_decimal(struct mk_json_writer *w, double n)
{
    double scaled = fabs(n) * 1e6;
    if (!(scaled >= 1e3 && scaled < 1e15)) /* other numbers may need an exponent, or more digits */
        return false;
    uint64_t digits = (uint64_t)(scaled + 0.5);
    if ((double)digits / 1e6 != fabs(n))
        return false;
    char text[DECIMALS + 1] = ".";
    mk_num_write_padded(text + 1, (unsigned)(digits % 1000000), DECIMALS);
    size_t len = sizeof text;
    while (len > 0 && (text[len - 1] == '0' || text[len - 1] == '.'))
        len--;
    write_integer(w, digits / 1000000, n < 0);
    mk_buf_put(w->out, mk_str_of(text, len));
    return true;
}

void mk_json_double(struct mk_json_writer *w, double n)
{
    char text[NUMBER_MAX];
    if (!isfinite(n)) {
        mk_json_null(w);
        return;
    }
    if (n == 0) { /* parsers read -0 as the integer 0 */
        mk_json_raw(w, signbit(n) ? MK_STR("-0.0") : MK_STR("0"));
        return;
    }
    if (write_short_decimal(w, n))
        return;
    for (int digits = SIGNIFICANT; digits <= EXACT; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, n);
        if (digits == EXACT || strtod(text, NULL) == n) /* both use the same locale */
            break;
    }
    normalize_decimal_point(text);
    write_value(w, mk_str_from_c(text));
}
