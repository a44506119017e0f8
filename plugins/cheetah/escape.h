/* SPDX-License-Identifier: Apache-2.0 */
/* Escapes text so that a terminal displays it without interpreting it. */
#ifndef CHEETAH_ESCAPE_H
#define CHEETAH_ESCAPE_H

#include <monkey/buf.h>

/* Appends the text. Tabs and visible characters, in ASCII and well-formed UTF-8, stay unchanged. All other
 * bytes become \xHH: newlines and other control characters, invisible characters, and characters that change
 * the direction of text. */
void cheetah_escape_append(struct mk_buf *out, mk_str s);

#endif
