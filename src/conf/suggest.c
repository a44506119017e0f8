/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/suggest.h"

enum { FAR_MAX = 4 };

static unsigned min_unsigned(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static bool same_char_nocase(mk_str a, size_t i, mk_str b, size_t j)
{
    return mk_char_lower(a.p[i]) == mk_char_lower(b.p[j]);
}

/* Optimal string alignment, row by row: computes `now` from the row above and, for swapped neighbors, the
 * row above that. */
static void fill_distance_row(mk_str a, mk_str b, size_t i, unsigned *now, const unsigned *above,
                              const unsigned *higher)
{
    now[0] = (unsigned)i;
    for (size_t j = 1; j <= b.len; j++) {
        unsigned replaced = above[j - 1] + !same_char_nocase(a, i - 1, b, j - 1);
        now[j] = min_unsigned(replaced, min_unsigned(above[j], now[j - 1]) + 1);
        if (i > 1 && j > 1 && same_char_nocase(a, i - 1, b, j - 2) && same_char_nocase(a, i - 2, b, j - 1))
            now[j] = min_unsigned(now[j], higher[j - 2] + 1);
    }
}

unsigned mk_conf_suggest_distance(mk_str a, mk_str b)
{
    unsigned rows[3][MK_CONF_SUGGEST_LEN + 1] = {0};
    if (a.len > MK_CONF_SUGGEST_LEN || b.len > MK_CONF_SUGGEST_LEN)
        return MK_CONF_SUGGEST_FAR;
    for (size_t j = 0; j <= b.len; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a.len; i++)
        fill_distance_row(a, b, i, rows[i % 3], rows[(i + 2) % 3], rows[(i + 1) % 3]);
    return rows[a.len % 3][b.len];
}

struct mk_conf_suggest mk_conf_suggest_for(mk_str word)
{
    return (struct mk_conf_suggest){.word = word, .distance = MK_CONF_SUGGEST_FAR};
}

static size_t common_prefix_len(mk_str a, mk_str b)
{
    size_t n = 0, len = mk_min(a.len, b.len);
    while (n < len && same_char_nocase(a, n, b, n))
        n++;
    return n;
}

void mk_conf_suggest_try(struct mk_conf_suggest *n, mk_str candidate)
{
    size_t near = mk_min((mk_max(n->word.len, candidate.len) + 1) / 3, FAR_MAX);
    /* Rejects most candidates without computing the distance, because their lengths differ too much. */
    if (mk_max(n->word.len, candidate.len) - mk_min(n->word.len, candidate.len) > near)
        return;
    unsigned distance = mk_conf_suggest_distance(n->word, candidate);
    size_t shared = common_prefix_len(n->word, candidate);
    if (distance > near || distance > n->distance || (distance == n->distance && shared <= n->shared))
        return;
    n->best = candidate;
    n->distance = distance;
    n->shared = shared;
}
