/* SPDX-License-Identifier: Apache-2.0 */
/* Escapes text so that a terminal displays it without interpreting it. */
#ifndef CHEETAH_ESCAPE_H
#define CHEETAH_ESCAPE_H

#include <monkey/buf.h>

/* Keeps tabs and visible characters, in ASCII and well-formed UTF-8. Everything else, including line ends,
 * becomes \xHH: control characters, invisible ones, and those that change the direction of text. Safe text is
 * unchanged. */
void cheetah_escape_append(struct mk_buf *out, mk_str s);

#endif
