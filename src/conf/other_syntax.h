/* SPDX-License-Identifier: Apache-2.0 */
/* Detects syntax of other formats: comments and semicolons after a value, and whole configurations of other
 * servers. The caller can then report a single error with a hint instead of many errors. */
#ifndef MK_CONF_OTHER_SYNTAX_H
#define MK_CONF_OTHER_SYNTAX_H

#include "base/str.h"

/* Returns the part of `text` that other formats would not count as part of the value: from a `#` or `;` after
 * a blank, or a final `;`, unless quoted. Absent if there is none. */
mk_str mk_conf_other_syntax_tail(mk_str text);
/* Returns a hint that tells the user how to avoid the tail; NULL if the tail is absent. */
const char *mk_conf_other_syntax_hint(mk_str tail);

struct mk_conf_other_syntax {
    const char *server; /* the server whose format was detected; NULL: none */
    const char *hint;   /* how to write the configuration for Monkey */
    unsigned line;      /* from 1: the line that identifies the format */
    mk_str source;      /* that line */
};

/* Detects a text that is, even in part, a configuration of nginx, Apache or Caddy. Considers only lines that
 * are meaningless in Monkey's format. */
struct mk_conf_other_syntax mk_conf_other_syntax_detect(mk_str text);

#endif
