/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers: functions that run on stacks of their own and can be suspended. No HTTP here. */
#ifndef DUDA_FIBER_FIBER_H
#define DUDA_FIBER_FIBER_H

#include "fiber/stack_pool.h"

/* A function under way. All fibers of a pool belong to one thread. */
struct duda_fiber;

/* It has not begun: duda_fiber_resume() calls fn(arg). NULL: no stack to be had. */
struct duda_fiber *duda_fiber_new(struct duda_stack_pool *stacks, void (*fn)(void *arg), void *arg);
/* Runs it until it yields or fn has returned. True: it has returned. */
bool duda_fiber_resume(struct duda_fiber *f);
/* In the fiber itself: back to who resumed it. */
void duda_fiber_yield(struct duda_fiber *f);
/* Not while it runs. One that has not returned is forgotten: what its frames hold is lost. */
void duda_fiber_free(struct duda_fiber *f);

/* Its stack, for reports. */
const struct duda_stack *duda_fiber_stack(const struct duda_fiber *f);

#endif
