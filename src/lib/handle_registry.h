/* SPDX-License-Identifier: Apache-2.0 */
/* Is a pointer that a program hands in what it shall be: a server, a ticket, a probe? Debug builds know all
 * that there are (checked/known.c); others believe what is not NULL. From any thread. */
#ifndef MK_LIB_HANDLE_REGISTRY_H
#define MK_LIB_HANDLE_REGISTRY_H

#include <stdbool.h>

/* False: memory is out. */
bool mk_handle_register(const void *p);
void mk_handle_unregister(const void *p);
bool mk_handle_is_valid(const void *p);

#endif
