/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the candidate most similar to a misspelled word. The distance is the number of letters to insert,
 * remove, replace or swap with a neighbor, ignoring ASCII case.
 *
 *     struct mk_conf_suggest near = mk_conf_suggest_for(word);
 *     for (...)
 *         mk_conf_suggest_try(&near, candidate);
 *     mk_conf_report_suggest(report, near.best);
 */
#ifndef MK_CONF_SUGGEST_H
#define MK_CONF_SUGGEST_H

#include "base/str.h"

struct mk_conf_suggest {
    mk_str word;
    mk_str best; /* best candidate so far, not copied; absent: none was near enough */
    unsigned distance;
    size_t shared; /* length of the prefix that `best` shares with the word */
};

struct mk_conf_suggest mk_conf_suggest_for(mk_str word);
/* Tries a candidate. Of two equally near candidates, the one with the longer common prefix wins, or else the
 * first. The distance may be at most a third (rounded) of the length of the longer word, and at most 4. */
void mk_conf_suggest_try(struct mk_conf_suggest *n, mk_str candidate);

/* The maximum length of a word that can have a suggestion. */
enum { MK_CONF_SUGGEST_LEN = 64 };
#define MK_CONF_SUGGEST_FAR ((unsigned)-1)
/* Returns the distance between two words; MK_CONF_SUGGEST_FAR if one of them is longer than
 * MK_CONF_SUGGEST_LEN. */
unsigned mk_conf_suggest_distance(mk_str a, mk_str b);

#endif
