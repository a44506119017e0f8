/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions in a configuration: [HANDLERS], the section of Monkey 1.6, uses those of libc; all
 * other sections use PCRE2. The arena frees the expressions. */
#ifndef MK_SETUP_CONF_REGEX_H
#define MK_SETUP_CONF_REGEX_H

#include <monkey/regex.h>

#include "conf/report.h"

/* Compiles a regular expression. NULL: invalid, and the error was reported. */
struct mk_regex *mk_conf_regex_new(struct mk_arena *arena, struct mk_conf_report *report,
                                   const struct mk_conf_source_pos *at, mk_str pattern,
                                   bool nocase) MK_MUST_USE;
/* Compiles a case-insensitive POSIX extended regular expression. The pattern, and each text that is matched,
 * must be NUL-terminated. */
struct mk_regex *mk_conf_regex_new_posix(struct mk_arena *arena, struct mk_conf_report *report,
                                         const struct mk_conf_source_pos *at, mk_str pattern) MK_MUST_USE;

/* Hint for an error about a word that looks like the rest of a regular expression. */
#define MK_CONF_REGEX_BLANK "a blank ends the regular expression: write it as `\\x20`"

#endif
