/* SPDX-License-Identifier: Apache-2.0 */
#include "fiber/stacks.h"

#include <monkey/mem.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Linux 6.13: a page without access that does not split the mapping, of which a process has 65,530. */
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

enum { SLAB = 8 << 20 }; /* address space, not memory */

struct slab {
    struct slab *next;
    char *base;
    size_t size;
    struct duda_stack stacks[];
};

struct duda_stacks {
    size_t page, step; /* a guard and a stack */
    size_t a_slab;     /* stacks of a slab */
    struct slab *slabs;
    struct duda_stack *warm, *cold;
    size_t n_warm, used, made;
    size_t n_taken, least_warm; /* within this span */
};

struct duda_stacks *duda_stacks_new(size_t size)
{
    struct duda_stacks *s = mk_mem_zalloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->page = (size_t)sysconf(_SC_PAGESIZE);
    size = size < DUDA_STACKS_SIZE_MIN   ? DUDA_STACKS_SIZE_MIN
           : size > DUDA_STACKS_SIZE_MAX ? DUDA_STACKS_SIZE_MAX
                                         : size;
    s->step = ((size + s->page - 1) & ~(s->page - 1)) + s->page;
    s->a_slab = s->step < SLAB ? SLAB / s->step : 1;
    return s;
}

void duda_stacks_free(struct duda_stacks *s)
{
    if (!s)
        return;
    while (s->slabs) {
        struct slab *slab = s->slabs;
        s->slabs = slab->next;
        munmap(slab->base, slab->size);
        mk_mem_free(slab);
    }
    mk_mem_free(s);
}

static bool set_guard(char *page, size_t size)
{
    return madvise(page, size, MADV_GUARD_INSTALL) == 0 || mprotect(page, size, PROT_NONE) == 0;
}

/* A stack whose guard cannot be set is not used. */
static void add_stacks(struct duda_stacks *s, struct slab *slab)
{
    for (size_t i = 0; i < s->a_slab; i++) {
        struct duda_stack *stack = &slab->stacks[i];
        char *guard = slab->base + i * s->step;
        *stack = (struct duda_stack){.of = s, .low = guard + s->page, .size = s->step - s->page};
        if (!set_guard(guard, s->page))
            continue;
        stack->next = s->cold;
        s->cold = stack;
        s->made++;
    }
}

static void grow(struct duda_stacks *s)
{
    struct slab *slab = mk_mem_zalloc(1, sizeof *slab + s->a_slab * sizeof slab->stacks[0]);
    if (!slab)
        return;
    slab->size = s->a_slab * s->step;
    slab->base = mmap(NULL, slab->size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (slab->base == MAP_FAILED) {
        mk_mem_free(slab);
        return;
    }
    (void)madvise(slab->base, slab->size, MADV_NOHUGEPAGE); /* a page of each is all that most need */
    slab->next = s->slabs;
    s->slabs = slab;
    add_stacks(s, slab);
}

static struct duda_stack *take_warm(struct duda_stacks *s)
{
    struct duda_stack *stack = s->warm;
    s->warm = stack->next;
    s->n_warm--;
    return stack;
}

static void cool(struct duda_stacks *s, struct duda_stack *stack)
{
    (void)madvise(stack->low, stack->size, MADV_DONTNEED);
    stack->next = s->cold;
    s->cold = stack;
}

/* As many handlers as wait at once find warm stacks: a page that is given back costs two system calls' time,
 * and its fault as much. A burst does not keep them for ever. */
static void begin_span(struct duda_stacks *s)
{
    for (; s->least_warm; s->least_warm--)
        cool(s, take_warm(s));
    s->least_warm = s->n_warm;
    s->n_taken = 0;
}

struct duda_stack *duda_stacks_take(struct duda_stacks *s)
{
    struct duda_stack *stack;
    if (++s->n_taken > DUDA_STACKS_SPAN)
        begin_span(s);
    if (s->warm) {
        stack = take_warm(s);
    } else {
        if (!s->cold)
            grow(s);
        stack = s->cold;
        if (!stack)
            return NULL;
        s->cold = stack->next;
    }
    if (s->n_warm < s->least_warm)
        s->least_warm = s->n_warm;
    s->used++;
    return stack;
}

void duda_stacks_drop(struct duda_stack *stack)
{
    struct duda_stacks *s = stack->of;
    s->used--;
    stack->user = NULL;
    if (s->n_warm >= DUDA_STACKS_WARM) {
        cool(s, stack);
        return;
    }
    s->n_warm++;
    stack->next = s->warm;
    s->warm = stack;
}

struct duda_stack *duda_stacks_guarded(struct duda_stacks *s, const void *address)
{
    uintptr_t at = (uintptr_t)address;
    for (struct slab *slab = s->slabs; slab; slab = slab->next) {
        uintptr_t base = (uintptr_t)slab->base;
        if (at >= base && at < base + slab->size)
            return (at - base) % s->step < s->page ? &slab->stacks[(at - base) / s->step] : NULL;
    }
    return NULL;
}

size_t duda_stacks_used(const struct duda_stacks *s)
{
    return s->used;
}

size_t duda_stacks_made(const struct duda_stacks *s)
{
    return s->made;
}
