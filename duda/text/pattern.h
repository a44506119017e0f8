/* SPDX-License-Identifier: Apache-2.0 */
/* The patterns of schemas: compiled once, on their first use. */
#ifndef DUDA_TEXT_PATTERN_H
#define DUDA_TEXT_PATTERN_H

#include <monkey/regex.h>

/* Returns whether the text matches. Also returns false if the pattern is invalid, if the server has no
 * regular expressions, if memory is exhausted, or if the search exceeds its limits. Thread-safe. */
bool duda_pattern_matches(const char *pattern, mk_str text);
/* Compiles the pattern. Returns 0, or sets *error and returns its code. */
int duda_pattern_check(const char *pattern, struct mk_regex_error *error);

#endif
