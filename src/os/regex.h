/* SPDX-License-Identifier: Apache-2.0 */
/* The implementation of regular expressions is src/os/regex_pcre2.c, a build option (MK_PCRE2). */
#ifndef MK_OS_REGEX_H
#define MK_OS_REGEX_H

#include <monkey/regex.h>

/* Implements mk_regex_new(). */
typedef struct mk_regex *mk_regex_compile(mk_str pattern, bool nocase, struct mk_regex_error *error);

#endif
