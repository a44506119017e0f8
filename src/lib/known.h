/* SPDX-License-Identifier: Apache-2.0 */
/* Is a pointer that a program hands in what it shall be: a server, a ticket, a probe? Debug builds know all
 * that there are (checked/known.c); others believe what is not NULL. From any thread. */
#ifndef MK_LIB_KNOWN_H
#define MK_LIB_KNOWN_H

#include <stdbool.h>

/* False: memory is out. */
bool mk_known_add(const void *p);
void mk_known_remove(const void *p);
bool mk_known_is(const void *p);

#endif
