/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/text.h"

#include <stdlib.h>

enum { NUMBER_LEN = 40 }; /* longer than any number that clients print */

struct unit {
    const char *name; /* a name comes before its own prefixes */
    double factor;
};

static const struct unit TIMES[] = {{"ns", 1e-3}, {"us", 1},   {"ms", 1e3},
                                    {"s", 1e6},   {"m", 60e6}, {"h", 3600e6}};
static const struct unit SIZES[] = {{"KB", 0x1p10}, {"MB", 0x1p20}, {"GB", 0x1p30}, {"TB", 0x1p40}, {"B", 1},
                                    {"K", 0x1p10},  {"M", 0x1p20},  {"G", 0x1p30},  {"T", 0x1p40}};

bool wr_text_next_line(mk_str *rest, mk_str *line)
{
    if (rest->len == 0 || mk_str_find(*rest, '\n') == MK_STR_NONE)
        return false;
    *line = mk_str_cut(rest, '\n');
    if (mk_str_ends(*line, MK_STR("\r")))
        line->len--;
    size_t over = mk_str_find_last(*line, '\r');
    if (over != MK_STR_NONE)
        *line = mk_str_skip(*line, over + 1);
    return true;
}

static size_t count_digits(mk_str s, size_t from)
{
    size_t n = 0;
    while (from + n < s.len && mk_char_is_digit(s.p[from + n]))
        n++;
    return n;
}

/* Returns the length of the number at the start of `s`; 0 if there is none. */
static size_t number_len(mk_str s, bool fraction, bool exponent)
{
    size_t len = count_digits(s, 0);
    if (len == 0)
        return 0;
    if (fraction && len + 1 < s.len && s.p[len] == '.' && mk_char_is_digit(s.p[len + 1]))
        len += 1 + count_digits(s, len + 1);
    if (exponent && len < s.len && mk_char_lower(s.p[len]) == 'e') {
        size_t sign = len + 1 < s.len && (s.p[len + 1] == '-' || s.p[len + 1] == '+');
        size_t digits = count_digits(s, len + 1 + sign);
        len += digits ? 1 + sign + digits : 0;
    }
    return len;
}

/* Converts a number of known length: `s` lacks the NUL that strtod needs. */
static bool convert_number(mk_str s, double *out)
{
    char text[NUMBER_LEN + 1];
    if (s.len > NUMBER_LEN)
        return false;
    memcpy(text, s.p, s.len);
    text[s.len] = 0;
    double value = strtod(text, NULL);
    if (!(value >= 0 && value <= WR_NUMBER_MAX))
        return false;
    *out = value;
    return true;
}

bool wr_text_parse_number(mk_str text, double *out)
{
    size_t len = number_len(text, true, true);
    return len && len == text.len && convert_number(text, out);
}

static bool scan_number(mk_str *s, bool fraction, double *out)
{
    size_t len = number_len(*s, fraction, false);
    if (len == 0 || !convert_number(mk_str_first(*s, len), out))
        return false;
    *s = mk_str_skip(*s, len);
    return true;
}

static bool scan_quantity(mk_str *s, const struct unit *units, size_t n_units, double *out)
{
    double value;
    if (!scan_number(s, true, &value))
        return false;
    for (size_t i = 0; i < n_units; i++) {
        mk_str name = mk_str_from_c(units[i].name);
        if (!mk_str_starts(*s, name))
            continue;
        *s = mk_str_skip(*s, name.len);
        value *= units[i].factor;
        *out = value;
        return value <= WR_NUMBER_MAX;
    }
    return false;
}

static bool scan_conversion(mk_str *s, char conversion, double *out)
{
    switch (conversion) {
    case 'd':
        return scan_number(s, false, out);
    case 'f':
        return scan_number(s, true, out);
    case 't':
        return scan_quantity(s, TIMES, MK_LEN(TIMES), out);
    case 'b':
        return scan_quantity(s, SIZES, MK_LEN(SIZES), out);
    default:
        return false;
    }
}

static mk_str skip_blanks(mk_str s)
{
    size_t n = 0;
    while (n < s.len && (s.p[n] == ' ' || s.p[n] == '\t'))
        n++;
    return mk_str_skip(s, n);
}

bool wr_text_scan(mk_str line, const char *pattern, double *out)
{
    for (const char *p = pattern; *p; p++) {
        if (*p == ' ') {
            line = skip_blanks(line);
        } else if (*p == '%' && p[1] != '%') {
            if (!scan_conversion(&line, *++p, out++))
                return false;
        } else {
            p += *p == '%';
            if (line.len == 0 || line.p[0] != *p)
                return false;
            line = mk_str_skip(line, 1);
        }
    }
    return true;
}
