/* SPDX-License-Identifier: Apache-2.0 */
/* Detects syntax of other formats: comments and semicolons after a value. */
#ifndef MK_CONF_OTHER_SYNTAX_H
#define MK_CONF_OTHER_SYNTAX_H

#include "base/str.h"

/* Returns the part of `text` that other formats would not count as part of the value: from a `#` or `;` after
 * a blank, or a final `;`, unless quoted. Absent if there is none. */
mk_str mk_conf_other_syntax_tail(mk_str text);
/* Returns a hint that tells the user how to avoid the tail; NULL if the tail is absent. */
const char *mk_conf_other_syntax_hint(mk_str tail);

#endif
