/* SPDX-License-Identifier: Apache-2.0 */
/* Text that a terminal shows and does not obey. */
#ifndef SHELL_SAFE_H
#define SHELL_SAFE_H

#include <monkey/buf.h>

/* Tabs and what can be seen stay, in ASCII and well-formed UTF-8. All else, line ends too, becomes \xHH:
 * control characters, and those that change the direction of text or cannot be seen. Safe text stays as it
 * is. */
void shell_safe_add(struct mk_buf *out, mk_str s);

#endif
