/* SPDX-License-Identifier: Apache-2.0 */
/* The word that was probably meant. Distance is the number of letters to insert, remove, replace or swap with
 * their neighbour; ASCII case does not count.
 *
 *     struct mk_conf_nearest near = mk_conf_nearest_to(word);
 *     for (...)
 *         mk_conf_nearest_try(&near, candidate);
 *     mk_conf_report_meant(report, near.best);
 */
#ifndef MK_CONF_NEAREST_H
#define MK_CONF_NEAREST_H

#include "base/str.h"

struct mk_conf_nearest {
    mk_str word;
    mk_str best; /* absent until a candidate is near enough; a slice of that candidate */
    unsigned distance;
    size_t shared; /* length of the common prefix */
};

struct mk_conf_nearest mk_conf_nearest_to(mk_str word);
/* Of two equally near candidates, the one with the longer common prefix wins, then the first. Near enough:
 * a third of the longer word's letters, 4 at most. */
void mk_conf_nearest_try(struct mk_conf_nearest *n, mk_str candidate);

/* Longer words match nothing. */
enum { MK_CONF_NEAREST_LEN = 64 };
#define MK_CONF_NEAREST_FAR ((unsigned)-1)
/* MK_CONF_NEAREST_FAR if one of them is longer than MK_CONF_NEAREST_LEN. */
unsigned mk_conf_nearest_distance(mk_str a, mk_str b);

#endif
