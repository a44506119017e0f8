/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether a service was compiled with stack probes, with which large frames hit the guard below their
 * stack. */
#ifndef DUDA_FIBER_STACK_PROBE_H
#define DUDA_FIBER_STACK_PROBE_H

#include <duda/service.h>

/* Returns the first source file that was compiled without stack probes; NULL if there is none, or if the
 * check failed. */
const char *duda_stack_probe_find_unprotected(const struct duda_service *service);

#endif
