/* SPDX-License-Identifier: Apache-2.0 */
/* Accept-Language: the lookup of RFC 4647, section 3.4, for each range, in order of weight. */
#include <duda/body.h>
#include <monkey/text.h>

enum { WEIGHT_MAX = 1000 };

/* Parses ";q=0.7" as thousandths; 0 if it is malformed. */
static unsigned parse_quality(mk_str s)
{
    static const unsigned unit[] = {100, 10, 1};
    if (s.len == 0)
        return WEIGHT_MAX;
    s = mk_str_trim(s);
    if (s.len < 3 || (s.p[0] != 'q' && s.p[0] != 'Q') || s.p[1] != '=' || (s.p[2] != '0' && s.p[2] != '1'))
        return 0;
    unsigned q = s.p[2] == '1' ? WEIGHT_MAX : 0;
    mk_str digits = mk_str_skip(s, 3);
    if (digits.len == 0)
        return q;
    if (digits.p[0] != '.' || digits.len > 4)
        return 0;
    for (size_t i = 1; i < digits.len; i++) {
        if (!mk_char_is_digit(digits.p[i]))
            return 0;
        q += (unsigned)(digits.p[i] - '0') * unit[i - 1];
    }
    return q > WEIGHT_MAX ? 0 : q;
}

/* Rates how well the language matches the range; 0: no match. "en" matches "en-GB", and "en-GB" matches "en",
 * but less well than "en" itself. */
static unsigned match_score(mk_str range, mk_str language)
{
    unsigned same = 0;
    if (mk_str_eq(range, MK_STR("*")))
        return 1;
    while (range.p && language.p) {
        mk_str expected = mk_str_cut(&range, '-'), own = mk_str_cut(&language, '-');
        if (!mk_str_eq_nocase(expected, own))
            return 0;
        same++;
    }
    return 2 * same + !(range.p || language.p);
}

static int find_best_match(mk_str range, const char *const *languages)
{
    unsigned best_close = 0;
    int best = -1;
    for (int i = 0; languages[i]; i++) {
        unsigned close = match_score(range, mk_str_from_c(languages[i]));
        if (close > best_close) {
            best_close = close;
            best = i;
        }
    }
    return best;
}

int duda_negotiate_language(mk_str field, const char *const *languages)
{
    int best = -1;
    unsigned best_q = 0;
    mk_str element;
    while (mk_header_list_next(&field, &element)) {
        mk_str range = mk_str_trim(mk_str_cut(&element, ';'));
        unsigned q = parse_quality(element.p ? element : MK_STR(""));
        int found = q > best_q ? find_best_match(range, languages) : -1;
        if (found >= 0) {
            best = found;
            best_q = q;
        }
    }
    return best;
}
