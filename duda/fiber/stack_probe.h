/* SPDX-License-Identifier: Apache-2.0 */
/* Was a service compiled so that large frames meet the guard below their stack? */
#ifndef DUDA_FIBER_STACK_PROBE_H
#define DUDA_FIBER_STACK_PROBE_H

#include <duda/service.h>

/* The first source whose frames leave out pages; NULL: none does, or nobody can tell. */
const char *duda_stack_probe_find_unprotected(const struct duda_service *service);

#endif
