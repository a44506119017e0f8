/* SPDX-License-Identifier: Apache-2.0 */
#include "fiber/stacks.h"

#include <monkey/mem.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Linux 6.13: pages without access that do not split the mapping. A process has 65,530 mappings (vm.max_map_count). */
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

/* Address space, not memory, of stacks that are mapped together. */
enum { SLAB = sizeof(void *) > 4 ? 32 << 20 : 4 << 20 };

struct slab {
    struct slab *next;
    char *base;
    size_t size, guard, step; /* a step is a guard and a stack */
    size_t n;
    struct duda_stack stacks[];
};

struct duda_stacks {
    size_t page, size;
    size_t guard; /* less than DUDA_STACKS_GUARD where address space is limited */
    struct slab *slabs;
    struct duda_stack *warm, *cold;
    size_t n_warm, used, made;
    size_t n_taken, least_warm; /* within this span */
};

/* RLIMIT_DATA or RLIMIT_AS. */
static bool is_limited(uint8_t resource)
{
    struct rlimit limit;
    return getrlimit(resource, &limit) || limit.rlim_cur != RLIM_INFINITY;
}

struct duda_stacks *duda_stacks_new(size_t size)
{
    struct duda_stacks *s = mk_mem_zalloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->page = (size_t)sysconf(_SC_PAGESIZE);
    size = size < DUDA_STACKS_SIZE_MIN   ? DUDA_STACKS_SIZE_MIN
           : size > DUDA_STACKS_SIZE_MAX ? DUDA_STACKS_SIZE_MAX
                                         : size;
    s->size = (size + s->page - 1) & ~(s->page - 1);
    s->guard = is_limited(RLIMIT_AS) ? DUDA_STACKS_GUARD / 16 : DUDA_STACKS_GUARD;
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

/* ---- Slabs ---- */

/* All of it may be written; then guards are taken out. A slab is one mapping, but all of it counts for limits of data and
 * committed memory. */
static bool map_open(struct slab *slab)
{
    slab->base = mmap(NULL, slab->size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (slab->base == MAP_FAILED)
        return false;
    for (size_t i = 0; i < slab->n; i++)
        if (madvise(slab->base + i * slab->step, slab->guard, MADV_GUARD_INSTALL)) {
            munmap(slab->base, slab->size);
            return false;
        }
    return true;
}

/* Nothing of it may be touched; then stacks are opened. Only they count, but each is a mapping, and each guard, too. */
static bool map_closed(struct slab *slab)
{
    slab->base =
        mmap(NULL, slab->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    size_t opened = 0;
    while (slab->base != MAP_FAILED && opened < slab->n &&
           !mprotect(slab->base + opened * slab->step + slab->guard, slab->step - slab->guard,
                     PROT_READ | PROT_WRITE))
        opened++;
    if (slab->base != MAP_FAILED && !opened)
        munmap(slab->base, slab->size);
    slab->n = opened; /* a limit may let only some of them be opened */
    return opened > 0;
}

static struct slab *map_slab(const struct duda_stacks *s, size_t guard, size_t n)
{
    struct slab *slab = mk_mem_zalloc(1, sizeof *slab + n * sizeof slab->stacks[0]);
    if (!slab)
        return NULL;
    slab->guard = guard;
    slab->step = guard + s->size;
    slab->n = n;
    slab->size = n * slab->step;
    if ((!is_limited(RLIMIT_DATA) && map_open(slab)) || map_closed(slab))
        return slab;
    mk_mem_free(slab);
    return NULL;
}

/* Where address space is short, guards become smaller: code with stack clash protection, which services and packages have, needs
 * a page of it. Then fewer stacks are mapped together. */
static struct slab *make_slab(struct duda_stacks *s)
{
    size_t step = s->guard + s->size, n = step < SLAB ? SLAB / step : 1;
    struct slab *slab;
    while (!(slab = map_slab(s, s->guard, n)) && s->guard > s->page)
        s->guard = s->guard / 16 > s->page ? s->guard / 16 : s->page;
    while (!slab && n > 1) {
        n /= 2;
        slab = map_slab(s, s->guard, n);
    }
    return slab;
}

static void grow(struct duda_stacks *s)
{
    struct slab *slab = make_slab(s);
    if (!slab)
        return;
    (void)madvise(slab->base, slab->size, MADV_NOHUGEPAGE); /* a page of each is all that most need */
    slab->next = s->slabs;
    s->slabs = slab;
    for (size_t i = 0; i < slab->n; i++) {
        struct duda_stack *stack = &slab->stacks[i];
        *stack = (struct duda_stack){
            .next = s->cold, .of = s, .low = slab->base + i * slab->step + slab->guard, .size = s->size};
        s->cold = stack;
    }
    s->made += slab->n;
}

/* ---- Stacks ---- */

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
            return (at - base) % slab->step < slab->guard ? &slab->stacks[(at - base) / slab->step] : NULL;
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
