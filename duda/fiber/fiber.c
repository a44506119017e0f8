/* SPDX-License-Identifier: Apache-2.0 */
#include "fiber/fiber.h"

#include "fiber/sanitizer_hooks.h"
#include "fiber/switch.h"

/* Stored at the top of its stack: a suspended fiber needs no memory but the page that holds its frames. */
struct duda_fiber {
    struct duda_stack *stack;
    struct duda_switch *at;
    void (*fn)(void *arg);
    void *arg;
    bool returned;
    struct duda_sanitizer_fiber checked;
};

static void fiber_main(void *arg)
{
    struct duda_fiber *f = arg;
    duda_sanitizer_after_switch_in(&f->checked, true);
    f->fn(f->arg);
    f->returned = true;
    duda_sanitizer_before_switch_out(&f->checked, true);
    duda_switch_out(f->at);
    __builtin_unreachable();
}

struct duda_fiber *duda_fiber_new(struct duda_stack_pool *stacks, void (*fn)(void *arg), void *arg)
{
    struct duda_stack *stack = duda_stack_pool_acquire(stacks);
    if (!stack)
        return NULL;
    size_t size = (stack->size - sizeof(struct duda_fiber)) & ~(size_t)63;
    struct duda_fiber *f = (struct duda_fiber *)(void *)(stack->low + size);
    *f = (struct duda_fiber){.stack = stack, .fn = fn, .arg = arg};
    f->at = duda_switch_new(stack->low, &size, fiber_main, f);
    duda_sanitizer_register_stack(&f->checked, stack->low, size);
    return f;
}

bool duda_fiber_resume(struct duda_fiber *f)
{
    duda_sanitizer_before_switch_in(&f->checked);
    duda_switch_in(f->at);
    duda_sanitizer_after_switch_out(&f->checked);
    return f->returned;
}

void duda_fiber_yield(struct duda_fiber *f)
{
    duda_sanitizer_before_switch_out(&f->checked, false);
    duda_switch_out(f->at);
    duda_sanitizer_after_switch_in(&f->checked, false);
}

void duda_fiber_free(struct duda_fiber *f)
{
    duda_sanitizer_unregister_stack(&f->checked, f->stack->low, f->stack->size);
    duda_stack_pool_release(f->stack);
}

const struct duda_stack *duda_fiber_stack(const struct duda_fiber *f)
{
    return f->stack;
}
