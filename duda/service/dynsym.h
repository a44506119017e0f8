/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the functions that the shared object of a service calls, by its dynamic symbols. */
#ifndef DUDA_SERVICE_DYNSYM_H
#define DUDA_SERVICE_DYNSYM_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether the symbol table of the shared object that contains this address contains one of these
 * names. If not, the object cannot call any of these functions. */
bool duda_dynsym_calls_any(const void *address, const char *const *names, size_t n);

/* Finds plugins whose functions the shared object with this address calls, but which are missing from the
 * NULL-terminated list `names`. Returns how many were written to `found`. */
size_t duda_dynsym_undeclared_plugins(const void *address, const char *const *names, const char **found,
                                      size_t max);

#endif
