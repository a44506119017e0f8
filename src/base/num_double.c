/* SPDX-License-Identifier: Apache-2.0 */
/* Separate from num.c, so that small programs that parse integers do not link strtod(). */
#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include "base/str.h"

/* Digits beyond the precision of a double do not justify a larger buffer. */
enum { TEXT_MAX = 256 };

static size_t skip_digits(mk_str s, size_t at)
{
    while (at < s.len && mk_char_is_digit(s.p[at]))
        at++;
    return at;
}

/* strtod() accepts more: spaces, "inf", hexadecimal numbers. */
static bool is_json_number(mk_str s)
{
    size_t first = s.len > 0 && s.p[0] == '-', at = skip_digits(s, first), digits;
    if (at == first || (at > first + 1 && s.p[first] == '0'))
        return false;
    if (at < s.len && s.p[at] == '.') {
        digits = at + 1;
        at = skip_digits(s, digits);
        if (at == digits)
            return false;
    }
    if (at < s.len && (s.p[at] == 'e' || s.p[at] == 'E')) {
        digits = at + 1;
        if (digits < s.len && (s.p[digits] == '+' || s.p[digits] == '-'))
            digits++;
        at = skip_digits(s, digits);
        if (at == digits)
            return false;
    }
    return at == s.len;
}

bool mk_num_parse_double(mk_str s, double *out)
{
    char text[TEXT_MAX + 1];
    if (s.len > TEXT_MAX || !is_json_number(s))
        return false;
    memcpy(text, s.p, s.len);
    text[s.len] = '\0';
    char *point = strchr(text, '.');
    if (point && *localeconv()->decimal_point) /* strtod() expects the decimal point of the locale */
        *point = *localeconv()->decimal_point;
    double n = strtod(text, NULL);
    if (!isfinite(n))
        return false;
    *out = n;
    return true;
}
