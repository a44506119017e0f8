/* SPDX-License-Identifier: Apache-2.0 */
/* Detects syntax of other formats: comments and semicolons after a value, and whole configurations of other
 * servers. Reports a single error with a hint instead of many errors. */
#ifndef MK_CONF_OTHER_SYNTAX_H
#define MK_CONF_OTHER_SYNTAX_H

#include "base/str.h"

/* Returns the part of `text` that other formats would not count as part of the value: from a `#` or `;` after
 * a blank, or a final `;`, unless quoted. Absent if there is none. */
mk_str mk_conf_other_syntax_tail(mk_str text);
/* Returns a hint for the user; NULL if the tail is absent. */
const char *mk_conf_other_syntax_hint(mk_str tail);

struct mk_conf_other_syntax {
    const char *server; /* the server whose format it is; NULL: no known server */
    const char *hint;   /* how to write the configuration for Monkey */
    unsigned line;      /* from 1: the line that identifies the format */
    mk_str source;      /* that line */
};

/* Detects whether the text, or a part of it, is a configuration of nginx, Apache or Caddy. Only lines that
 * are meaningless in our format count. */
struct mk_conf_other_syntax mk_conf_other_syntax_detect(mk_str text);

#endif
