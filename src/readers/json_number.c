/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/json_number.h"

#include <locale.h>
#include <math.h>
#include <monkey/json_reader.h>
#include <stdlib.h>

static size_t digits_len(mk_str s)
{
    size_t n = 0;
    while (n < s.len && mk_char_is_digit(s.p[n]))
        n++;
    return n;
}

size_t mk_json_number_len(mk_str s, bool *is_integer)
{
    size_t at = s.len && s.p[0] == '-';
    size_t n = digits_len(mk_str_skip(s, at));
    if (n == 0 || (n > 1 && s.p[at] == '0'))
        return 0;
    at += n;
    *is_integer = true;
    if (at < s.len && s.p[at] == '.') {
        n = digits_len(mk_str_skip(s, at + 1));
        if (n == 0)
            return 0;
        *is_integer = false;
        at += 1 + n;
    }
    if (at < s.len && (s.p[at] == 'e' || s.p[at] == 'E')) {
        at += at + 1 < s.len && (s.p[at + 1] == '+' || s.p[at + 1] == '-') ? 2 : 1;
        n = digits_len(mk_str_skip(s, at));
        if (n == 0)
            return 0;
        *is_integer = false;
        at += n;
    }
    return at;
}

/* Maximum length of a number. JSON sets no limit, but digits beyond the precision of a double do not justify
 * a larger buffer. */
enum { NUMBER_TEXT_MAX = 256 };

bool mk_json_number_parse(mk_str s, double *out)
{
    char text[NUMBER_TEXT_MAX + 1];
    bool is_integer;
    if (s.len == 0 || s.len > NUMBER_TEXT_MAX || mk_json_number_len(s, &is_integer) != s.len)
        return false;
    memcpy(text, s.p, s.len);
    text[s.len] = '\0';
    char *point = strchr(text, '.');
    if (point && *localeconv()->decimal_point)
        *point = *localeconv()->decimal_point;
    *out = strtod(text, NULL);
    return isfinite(*out);
}
