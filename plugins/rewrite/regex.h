/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions: regex/pcre2.c, or regex/none.c where there are none. */
#ifndef REWRITE_REGEX_H
#define REWRITE_REGEX_H

#include <monkey/plugin.h>

enum { CAPTURES_MAX = 32 };

/* What a pattern found: 0 is all of it. One that took no part is empty. */
struct captures {
    mk_str at[CAPTURES_MAX];
};

struct regex;

struct regex_error {
    char text[160];
    size_t at; /* where in the pattern */
};

/* NULL: `why` says what is wrong. */
struct regex *rewrite_regex_new(mk_str pattern, bool nocase, struct regex_error *why);
void rewrite_regex_free(void *regex);
/* How many groups it has, and the number of one with that name; 0 if there is none. */
unsigned rewrite_regex_groups(const struct regex *r);
unsigned rewrite_regex_group(const struct regex *r, mk_str name);

/* NULL in *why, unless the search was given up: then it says so, and the text counts as not matching. */
bool rewrite_regex_match(const struct regex *r, mk_str text, struct captures *out, const char **why);

#endif
