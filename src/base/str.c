/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

int mk_char_hex(char c)
{
    if (mk_char_is_digit(c))
        return c - '0';
    c = mk_char_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool equal_nocase(const char *a, const char *b, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (mk_char_lower(a[i]) != mk_char_lower(b[i]))
            return false;
    return true;
}

bool mk_str_eq_nocase(mk_str a, mk_str b)
{
    return a.len == b.len && equal_nocase(a.p, b.p, a.len);
}

bool mk_str_starts(mk_str s, mk_str prefix)
{
    return s.len >= prefix.len && mk_str_eq(mk_str_first(s, prefix.len), prefix);
}

bool mk_str_ends(mk_str s, mk_str suffix)
{
    return s.len >= suffix.len && mk_str_eq(mk_str_skip(s, s.len - suffix.len), suffix);
}

int mk_str_cmp(mk_str a, mk_str b)
{
    size_t common = mk_min(a.len, b.len);
    int order = common ? memcmp(a.p, b.p, common) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

size_t mk_str_find(mk_str s, char c)
{
    const char *at = s.len ? memchr(s.p, c, s.len) : NULL;
    return at ? (size_t)(at - s.p) : MK_STR_NONE;
}

size_t mk_str_find_last(mk_str s, char c)
{
    for (size_t i = s.len; i > 0; i--)
        if (s.p[i - 1] == c)
            return i - 1;
    return MK_STR_NONE;
}

mk_str mk_str_skip(mk_str s, size_t from)
{
    from = mk_min(from, s.len);
    return from ? mk_str_of(s.p + from, s.len - from) : s;
}

mk_str mk_str_first(mk_str s, size_t to)
{
    return mk_str_of(s.p, mk_min(to, s.len));
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

mk_str mk_str_trim(mk_str s)
{
    size_t from = 0, to = s.len;
    while (from < to && is_blank(s.p[from]))
        from++;
    while (to > from && is_blank(s.p[to - 1]))
        to--;
    return mk_str_skip(mk_str_first(s, to), from);
}

mk_str mk_str_cut(mk_str *s, char sep)
{
    mk_str whole = *s;
    size_t at = mk_str_find(whole, sep);
    if (at == MK_STR_NONE) {
        *s = MK_STR_NULL;
        return whole;
    }
    *s = mk_str_skip(whole, at + 1);
    return mk_str_first(whole, at);
}

mk_str mk_str_word(mk_str *s)
{
    mk_str rest = mk_str_trim(*s);
    size_t end = 0;
    while (end < rest.len && !is_blank(rest.p[end]))
        end++;
    *s = mk_str_skip(rest, end);
    return mk_str_first(rest, end);
}

/* Greedy with a single backtracking point: after a mismatch only the last star can take more, so the cost
 * is at most text length times pattern length. */
static inline __attribute__((always_inline)) bool match_glob(mk_str text, mk_str pattern, bool nocase)
{
    size_t t = 0, p = 0, star = MK_STR_NONE, resume = 0;
    while (t < text.len) {
        if (p < pattern.len && pattern.p[p] == '*') {
            star = p++;
            resume = t;
        } else if (p < pattern.len &&
                   (pattern.p[p] == '?' || (nocase ? mk_char_lower(pattern.p[p]) == mk_char_lower(text.p[t])
                                                   : pattern.p[p] == text.p[t]))) {
            p++;
            t++;
        } else if (star != MK_STR_NONE) {
            p = star + 1;
            t = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.p[p] == '*')
        p++;
    return p == pattern.len;
}

bool mk_str_match(mk_str text, mk_str pattern)
{
    return match_glob(text, pattern, false);
}

bool mk_str_match_nocase(mk_str text, mk_str pattern)
{
    return match_glob(text, pattern, true);
}
