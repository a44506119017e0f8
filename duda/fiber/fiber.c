/* SPDX-License-Identifier: Apache-2.0 */
#include "fiber/fiber.h"

#include "fiber/checkers.h"
#include "fiber/switch.h"

/* On top of its stack: a fiber that waits needs no memory but the page that its frames are on. */
struct duda_fiber {
    struct duda_stack *stack;
    struct duda_switch *at;
    void (*fn)(void *arg);
    void *arg;
    bool returned;
    struct duda_checked checked;
};

static __thread struct duda_fiber *starting;

static void run(void)
{
    struct duda_fiber *f = starting;
    duda_checkers_entered(&f->checked, true);
    f->fn(f->arg);
    f->returned = true;
    duda_checkers_leave(&f->checked, true);
    duda_switch_back(f->at);
    __builtin_unreachable();
}

struct duda_fiber *duda_fiber_new(struct duda_stacks *stacks, void (*fn)(void *arg), void *arg)
{
    struct duda_stack *stack = duda_stacks_take(stacks);
    if (!stack)
        return NULL;
    size_t size = (stack->size - sizeof(struct duda_fiber)) & ~(size_t)63;
    struct duda_fiber *f = (struct duda_fiber *)(void *)(stack->low + size);
    *f = (struct duda_fiber){.stack = stack, .fn = fn, .arg = arg};
    f->at = duda_switch_make(stack->low, &size, run);
    duda_checkers_open(&f->checked, stack->low, size);
    return f;
}

bool duda_fiber_resume(struct duda_fiber *f)
{
    starting = f;
    duda_checkers_enter(&f->checked);
    duda_switch_to(f->at);
    duda_checkers_left(&f->checked);
    return f->returned;
}

void duda_fiber_yield(struct duda_fiber *f)
{
    duda_checkers_leave(&f->checked, false);
    duda_switch_back(f->at);
    duda_checkers_entered(&f->checked, false);
}

void duda_fiber_free(struct duda_fiber *f)
{
    duda_checkers_close(&f->checked, f->stack->low, f->stack->size);
    duda_stacks_drop(f->stack);
}

const struct duda_stack *duda_fiber_stack(const struct duda_fiber *f)
{
    return f->stack;
}
