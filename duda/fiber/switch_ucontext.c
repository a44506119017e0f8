/* SPDX-License-Identifier: Apache-2.0 */
/* Stack switching with the ucontext functions of libc. Each switch makes a system call for the signal
 * mask. */
#include <ucontext.h>

#include "fiber/switch.h"

const char duda_switch_name[] = "ucontext";

struct duda_switch {
    ucontext_t here, back;
    void (*fn)(void *arg);
    void *arg;
};

/* The stack that is being started: makecontext() can pass only integers to switch_entry(). */
static __thread struct duda_switch *starting;

static void switch_entry(void)
{
    struct duda_switch *s = starting;
    s->fn(s->arg);
    __builtin_unreachable();
}

struct duda_switch *duda_switch_new(char *low, size_t *size, void (*fn)(void *arg), void *arg)
{
    *size = (*size - sizeof(struct duda_switch)) & ~(size_t)63;
    struct duda_switch *s = (struct duda_switch *)(void *)(low + *size);
    getcontext(&s->here);
    s->here.uc_stack.ss_sp = low;
    s->here.uc_stack.ss_size = *size;
    s->here.uc_link = NULL;
    makecontext(&s->here, switch_entry, 0);
    s->fn = fn;
    s->arg = arg;
    return s;
}

void duda_switch_in(struct duda_switch *s)
{
    starting = s;
    swapcontext(&s->back, &s->here);
}

void duda_switch_out(struct duda_switch *s)
{
    swapcontext(&s->here, &s->back);
}
