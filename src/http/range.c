/* SPDX-License-Identifier: Apache-2.0 */
#include "http/range.h"

#include "http/header.h"

enum spec { MALFORMED, UNSATISFIABLE, EMPTY, SATISFIABLE };

/* Parses digits; a number that does not fit becomes UINT64_MAX. */
static bool parse_position(mk_str s, uint64_t *out)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (!mk_char_is_digit(s.p[i]))
            return false;
        if (__builtin_mul_overflow(n, 10u, &n) || __builtin_add_overflow(n, (unsigned)(s.p[i] - '0'), &n))
            n = UINT64_MAX;
    }
    *out = n;
    return s.len > 0;
}

/* "-N": the last N bytes. */
static enum spec parse_suffix_range(mk_str digits, uint64_t size, struct mk_range *out)
{
    uint64_t n;
    if (!parse_position(digits, &n))
        return MALFORMED;
    if (n == 0)
        return UNSATISFIABLE;
    if (size == 0)
        return EMPTY;
    *out = (struct mk_range){.first = n < size ? size - n : 0, .last = size - 1};
    return SATISFIABLE;
}

static enum spec parse_range_spec(mk_str text, uint64_t size, struct mk_range *out)
{
    mk_str last = text, first = mk_str_cut(&last, '-');
    if (!last.p)
        return MALFORMED;
    if (first.len == 0)
        return parse_suffix_range(last, size, out);
    out->last = UINT64_MAX;
    if (!parse_position(first, &out->first) || (last.len && !parse_position(last, &out->last)))
        return MALFORMED;
    if (out->last < out->first)
        return MALFORMED;
    if (out->first >= size)
        return UNSATISFIABLE;
    if (out->last >= size)
        out->last = size - 1;
    return SATISFIABLE;
}

/* Do the ranges overlap or touch? The additions cannot overflow, because both ranges are within the size. */
static bool ranges_touch(struct mk_range a, struct mk_range b)
{
    return a.first <= b.last + 1 && b.first <= a.last + 1;
}

static struct mk_range merge_ranges(struct mk_range a, struct mk_range b)
{
    return (struct mk_range){.first = a.first < b.first ? a.first : b.first,
                             .last = a.last > b.last ? a.last : b.last};
}

/* Adds a range to disjoint ranges. Merges it with all ranges that it touches; the result takes the place of
 * the first of them. */
static unsigned add_range(struct mk_range *ranges, unsigned n, struct mk_range r)
{
    unsigned place = n, kept = 0;
    for (unsigned i = 0; i < n; i++) {
        if (ranges_touch(ranges[i], r)) {
            r = merge_ranges(ranges[i], r);
            place = place < n ? place : kept++;
        } else {
            ranges[kept++] = ranges[i];
        }
    }
    if (place == n)
        place = kept++;
    ranges[place] = r;
    return kept;
}

static bool skip_unit(mk_str *value)
{
    mk_str unit = mk_str_cut(value, '=');
    return value->p && mk_str_eq_nocase(unit, MK_STR("bytes"));
}

int mk_range_parse(mk_str value, uint64_t size, struct mk_range *out, unsigned max)
{
    if (!skip_unit(&value))
        return 0;
    unsigned n = 0, specs = 0;
    bool empty = false;
    mk_str element;
    while (mk_header_list_next(&value, &element)) {
        struct mk_range r;
        enum spec spec = parse_range_spec(element, size, &r);
        if (spec == MALFORMED || ++specs > max)
            return 0;
        empty |= spec == EMPTY;
        if (spec == SATISFIABLE)
            n = add_range(out, n, r);
    }
    if (n || empty || specs == 0)
        return (int)n;
    return -416;
}
