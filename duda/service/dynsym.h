/* SPDX-License-Identifier: Apache-2.0 */
/* Which functions the object of a service calls, as its dynamic symbols say. */
#ifndef DUDA_SERVICE_DYNSYM_H
#define DUDA_SERVICE_DYNSYM_H

#include <stdbool.h>
#include <stddef.h>

/* May the object with this address in it call one of them? False: its symbols do not name any. */
bool duda_dynsym_calls_any(const void *address, const char *const *names, size_t n);

/* The plugins of which the object with this address in it calls functions, but which are not among the names
 * (NULL ends them): how many were written to `found`. */
size_t duda_dynsym_undeclared_plugins(const void *address, const char *const *names, const char **found,
                                      size_t max);

#endif
