/* SPDX-License-Identifier: Apache-2.0 */
#include "rate.h"

#include "rate_table.h"

enum { PER_SECOND_MAX = 10000 };

#define RATE_MAX ((uint64_t)1 << 40)

/* Returns the seconds of a unit letter; 0 if it is invalid. */
static uint64_t unit_seconds(mk_str unit)
{
    static const struct {
        char letter;
        uint32_t seconds;
    } spans[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    for (size_t i = 0; unit.len == 1 && i < MK_LEN(spans); i++)
        if (mk_char_lower(unit.p[0]) == spans[i].letter)
            return spans[i].seconds;
    return 0;
}

bool limits_rate_parse_requests(mk_str text, uint64_t *interval, uint64_t *tolerance)
{
    uint64_t n;
    mk_str unit = text, number = mk_str_cut(&unit, '/');
    uint64_t seconds = unit_seconds(unit);
    if (!mk_num_parse(number, &n) || !seconds || n < 1 || n > PER_SECOND_MAX * seconds)
        return false;
    *interval = (seconds * 1000 * LIMITS_TICKS + n / 2) / n;
    *tolerance = (n - 1) * *interval;
    return true;
}

bool limits_rate_parse_size(mk_str text, uint64_t *bytes)
{
    static const char letters[] = "kmgt";
    const char *unit = text.len ? strchr(letters, mk_char_lower(text.p[text.len - 1])) : NULL;
    uint64_t n;
    unsigned shift = unit && *unit ? 10 * ((unsigned)(unit - letters) + 1) : 0;
    if (!mk_num_parse(shift ? mk_str_first(text, text.len - 1) : text, &n) || n > RATE_MAX >> shift)
        return false;
    *bytes = n << shift;
    return true;
}

bool limits_rate_parse_bandwidth(mk_str text, uint64_t *rate)
{
    return limits_rate_parse_size(text, rate) && *rate >= 1024;
}

uint64_t limits_rate_ticks_for_bytes(uint64_t bytes, uint64_t rate)
{
    uint64_t whole = bytes / rate, rest = bytes % rate; /* `rest` is below 2^40, because the rate is */
    uint64_t ticks = whole * 1000 * LIMITS_TICKS + rest * 1000 * LIMITS_TICKS / rate;
    return ticks ? ticks : 1;
}
