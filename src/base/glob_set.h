/* SPDX-License-Identifier: Apache-2.0 */
/* A set of globs and substrings that are searched in a text in a single pass (Aho-Corasick): fifty patterns
 * cost about as much as one. In a glob, `*` matches any sequence of characters, and `?` one character. */
#ifndef MK_BASE_GLOB_SET_H
#define MK_BASE_GLOB_SET_H

#include "base/arena.h"
#include "base/err.h"

/* Bytes of all patterns of a set together. */
enum { MK_GLOB_SET_MAX = 65000 };

struct mk_glob_set;

struct mk_glob {
    mk_str text;
    bool is_substring; /* the text may occur anywhere; `*` and `?` are literal */
};

/* Builds the set in the arena. The texts of the globs must live as long as the arena. -EFBIG: the patterns
 * have more than MK_GLOB_SET_MAX bytes; -ENOMEM. */
mk_err mk_glob_set_build(struct mk_arena *arena, const struct mk_glob *globs, size_t n, bool nocase,
                         const struct mk_glob_set **out) MK_MUST_USE;
/* Does the text match one of the globs? */
bool mk_glob_set_matches(const struct mk_glob_set *set, mk_str text);
/* Is a pass over a text of this length so expensive that its result is worth remembering? */
bool mk_glob_set_is_slow(const struct mk_glob_set *set, size_t text_len);

#endif
