/* SPDX-License-Identifier: Apache-2.0 */
/* The regular expressions of a configuration: those of Monkey 1.6 by the libc, all others by PCRE2. They end
 * with the arena. */
#ifndef MK_SETUP_CONF_REGEX_H
#define MK_SETUP_CONF_REGEX_H

#include <monkey/regex.h>

#include "conf/report.h"

/* NULL: the reason was reported. */
struct mk_regex *mk_conf_regex_new(struct mk_arena *arena, struct mk_conf_report *report,
                                   const struct mk_conf_source_pos *at, mk_str pattern,
                                   bool nocase) MK_MUST_USE;
/* POSIX extended, in any case of letters. The pattern, and each text that is matched, ends with a NUL. */
struct mk_regex *mk_conf_regex_new_posix(struct mk_arena *arena, struct mk_conf_report *report,
                                         const struct mk_conf_source_pos *at, mk_str pattern) MK_MUST_USE;

/* For a word that looks like the rest of a regular expression. */
#define MK_CONF_REGEX_BLANK "a blank ends the regular expression: write it as `\\x20`"

#endif
