/* SPDX-License-Identifier: Apache-2.0 */
/* Changing stacks with the C functions of Boost.Context, which are a few instructions of assembler. */
#include "fiber/switch.h"

/* Boost has no header for C. */
struct transfer {
    void *from, *data;
};
struct transfer jump_fcontext(void *to, void *data);
void *make_fcontext(void *top, size_t size, void (*fn)(struct transfer));

const char duda_switch_name[] = "boost";

struct duda_switch {
    void *here, *back;
    void (*fn)(void);
};

static void begin(struct transfer t)
{
    struct duda_switch *s = t.data;
    s->back = t.from;
    s->fn();
    __builtin_unreachable();
}

struct duda_switch *duda_switch_make(char *low, size_t *size, void (*fn)(void))
{
    *size = (*size - sizeof(struct duda_switch)) & ~(size_t)63;
    struct duda_switch *s = (struct duda_switch *)(void *)(low + *size);
    s->here = make_fcontext(low + *size, *size, begin);
    s->fn = fn;
    return s;
}

void duda_switch_to(struct duda_switch *s)
{
    s->here = jump_fcontext(s->here, s).from;
}

void duda_switch_back(struct duda_switch *s)
{
    s->back = jump_fcontext(s->back, s).from;
}
