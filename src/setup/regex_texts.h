/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that matches of a regular expression contain, for a search that comes before the expression. */
#ifndef MK_SETUP_REGEX_TEXTS_H
#define MK_SETUP_REGEX_TEXTS_H

#include "base/arena.h"

enum { MK_REGEX_TEXTS_MAX = 32 };

/* Finds texts of which each match of the expression contains at least one. `nocase`: the expression and the search for
 * its texts ignore case. Returns their number, or 0 if none are known. The texts are copied to the arena. */
size_t mk_regex_texts_find(struct mk_arena *arena, mk_str pattern, bool nocase,
                           mk_str texts[MK_REGEX_TEXTS_MAX]);

#endif
