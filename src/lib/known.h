/* SPDX-License-Identifier: Apache-2.0 */
/* Is a pointer that a program hands in a server? Debug builds know all that there are (checked/known.c);
 * others believe what is not NULL. */
#ifndef MK_LIB_KNOWN_H
#define MK_LIB_KNOWN_H

#include <stdbool.h>

struct mk_server;

/* False: memory is out. */
bool mk_known_add(struct mk_server *s);
void mk_known_remove(const struct mk_server *s);
bool mk_known_is(const struct mk_server *s);

#endif
