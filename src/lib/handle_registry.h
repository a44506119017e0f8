/* SPDX-License-Identifier: Apache-2.0 */
/* Debug builds validate handles from the program (servers, request references, test clients) against a
 * registry (checked/handle_registry.c); release builds only check for NULL. Callable from any thread. */
#ifndef MK_LIB_HANDLE_REGISTRY_H
#define MK_LIB_HANDLE_REGISTRY_H

#include <stdbool.h>

/* Registers a handle. False: out of memory. */
bool mk_handle_register(const void *p);
void mk_handle_unregister(const void *p);
bool mk_handle_is_valid(const void *p);

#endif
