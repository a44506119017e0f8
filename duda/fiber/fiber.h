/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers: functions that run on their own stacks and can be suspended. Independent of HTTP. */
#ifndef DUDA_FIBER_FIBER_H
#define DUDA_FIBER_FIBER_H

#include "fiber/stack_pool.h"

/* A running or suspended function. All fibers of a pool belong to one thread. */
struct duda_fiber;

/* Creates a suspended fiber; duda_fiber_resume() calls fn(arg). Returns NULL if no stack is available. */
struct duda_fiber *duda_fiber_new(struct duda_stack_pool *stacks, void (*fn)(void *arg), void *arg);
/* Runs the fiber until it yields or fn returns. Returns true if fn has returned. */
bool duda_fiber_resume(struct duda_fiber *f);
/* Called in the fiber: switches back to the caller of duda_fiber_resume(). */
void duda_fiber_yield(struct duda_fiber *f);
/* Frees the fiber, which must not be running. If its function has not returned, resources that the stack
 * frames own leak. */
void duda_fiber_free(struct duda_fiber *f);

/* Returns the stack of the fiber, for reports. */
const struct duda_stack *duda_fiber_stack(const struct duda_fiber *f);

#endif
