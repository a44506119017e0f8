/* SPDX-License-Identifier: Apache-2.0 */
/* Stack switching with Boost.Context's fcontext functions, a few instructions of assembly with C linkage. */
#include "fiber/switch.h"

/* Boost provides no C header. */
struct transfer {
    void *from, *data;
};
struct transfer jump_fcontext(void *to, void *data);
void *make_fcontext(void *top, size_t size, void (*fn)(struct transfer));

const char duda_switch_name[] = "boost";

struct duda_switch {
    void *here, *back;
    void (*fn)(void *arg);
    void *arg;
};

static void switch_entry(struct transfer t)
{
    struct duda_switch *s = t.data;
    s->back = t.from;
    s->fn(s->arg);
    __builtin_unreachable();
}

struct duda_switch *duda_switch_new(char *low, size_t *size, void (*fn)(void *arg), void *arg)
{
    *size = (*size - sizeof(struct duda_switch)) & ~(size_t)63;
    struct duda_switch *s = (struct duda_switch *)(void *)(low + *size);
    s->here = make_fcontext(low + *size, *size, switch_entry);
    s->fn = fn;
    s->arg = arg;
    return s;
}

void duda_switch_in(struct duda_switch *s)
{
    s->here = jump_fcontext(s->here, s).from;
}

void duda_switch_out(struct duda_switch *s)
{
    s->back = jump_fcontext(s->back, s).from;
}
