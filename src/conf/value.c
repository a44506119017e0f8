/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/value.h"

#include "base/num.h"

struct unit {
    mk_str suffix;
    uint64_t factor;
};

/* Largest first: the writers take the first unit that divides the value. */
static const struct unit sizes[] = {
    {MK_STR_INIT("G"), 1024ULL * 1024 * 1024},
    {MK_STR_INIT("M"), 1024ULL * 1024},
    {MK_STR_INIT("K"), 1024},
    {MK_STR_INIT("B"), 1},
};
static const struct unit times[] = {
    {MK_STR_INIT("d"), 86400000}, {MK_STR_INIT("h"), 3600000}, {MK_STR_INIT("m"), 60000},
    {MK_STR_INIT("s"), 1000},     {MK_STR_INIT("ms"), 1},
};

mk_err mk_conf_value_parse_bool(mk_str s, bool *out)
{
    static const mk_str words[] = {MK_STR_INIT("off"), MK_STR_INIT("on"),    MK_STR_INIT("no"),
                                   MK_STR_INIT("yes"), MK_STR_INIT("false"), MK_STR_INIT("true")};
    for (size_t i = 0; i < MK_LEN(words); i++)
        if (mk_str_eq_nocase(s, words[i])) {
            *out = i % 2 == 1;
            return 0;
        }
    return -EINVAL;
}

static size_t count_digits(mk_str s)
{
    size_t n = 0;
    while (n < s.len && mk_char_is_digit(s.p[n]))
        n++;
    return n;
}

mk_err mk_conf_value_parse_num(mk_str s, uint64_t *out)
{
    if (s.len == 0 || count_digits(s) != s.len)
        return -EINVAL;
    return mk_num_parse(s, out) ? 0 : -ERANGE;
}

static bool unit_factor(mk_str suffix, const struct unit *units, size_t n, uint64_t bare, uint64_t *factor)
{
    *factor = bare;
    for (size_t i = 0; i < n && suffix.len; i++)
        if (mk_str_eq_nocase(suffix, units[i].suffix)) {
            *factor = units[i].factor;
            return true;
        }
    return suffix.len == 0;
}

static mk_err parse_amount(mk_str s, const struct unit *units, size_t n, uint64_t bare, uint64_t *out)
{
    uint64_t number, factor, product;
    size_t digits = count_digits(s);
    if (digits == 0 || !unit_factor(mk_str_skip(s, digits), units, n, bare, &factor))
        return -EINVAL;
    if (!mk_num_parse(mk_str_first(s, digits), &number) || __builtin_mul_overflow(number, factor, &product))
        return -ERANGE;
    *out = product;
    return 0;
}

mk_err mk_conf_value_parse_size(mk_str s, uint64_t unit, uint64_t *bytes)
{
    return parse_amount(s, sizes, MK_LEN(sizes), unit ? unit : 1, bytes);
}

mk_err mk_conf_value_parse_time(mk_str s, uint64_t unit, uint64_t *ms)
{
    return parse_amount(s, times, MK_LEN(times), unit ? unit : 1000, ms);
}

static void write_amount(struct mk_buf *out, uint64_t n, const struct unit *units)
{
    while (n % units->factor)
        units++;
    mk_buf_add_num(out, n / units->factor);
    mk_buf_add(out, units->suffix);
}

void mk_conf_value_write_size(struct mk_buf *out, uint64_t bytes, uint64_t unit)
{
    if (bytes == 0 || (unit <= 1 && bytes % 1024))
        mk_buf_add_num(out, bytes);
    else
        write_amount(out, bytes, sizes);
}

void mk_conf_value_write_time(struct mk_buf *out, uint64_t ms)
{
    if (ms == 0)
        mk_buf_add_num(out, ms);
    else
        write_amount(out, ms, times);
}
