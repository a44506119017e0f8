/* SPDX-License-Identifier: Apache-2.0 */
#include "fiber/stack_pool.h"

#include <monkey/mem.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Linux 6.13: inaccessible pages that do not split the mapping. A process may have 65,530 mappings
 * (vm.max_map_count). */
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

/* Address space (not memory) of stacks that are mapped together. */
enum { SLAB = sizeof(void *) > 4 ? 32 << 20 : 4 << 20 };

struct slab {
    struct slab *next;
    char *base;
    size_t size, guard, step; /* a step is a guard and a stack */
    size_t n;
    struct duda_stack stacks[];
};

struct duda_stack_pool {
    size_t page, size;
    size_t guard; /* less than DUDA_STACK_POOL_GUARD if address space is limited */
    struct slab *slabs;
    struct duda_stack *warm, *cold;
    size_t n_warm, used, made;
    size_t n_taken, least_warm; /* acquisitions, and the lowest n_warm, since the last trim */
};

/* Returns whether the resource, RLIMIT_DATA or RLIMIT_AS, is limited. */
static bool has_rlimit(uint8_t resource)
{
    struct rlimit limit;
    return getrlimit(resource, &limit) || limit.rlim_cur != RLIM_INFINITY;
}

struct duda_stack_pool *duda_stack_pool_new(size_t size)
{
    struct duda_stack_pool *s = mk_mem_zalloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->page = (size_t)sysconf(_SC_PAGESIZE);
    size = size < DUDA_STACK_POOL_SIZE_MIN   ? DUDA_STACK_POOL_SIZE_MIN
           : size > DUDA_STACK_POOL_SIZE_MAX ? DUDA_STACK_POOL_SIZE_MAX
                                             : size;
    s->size = (size + s->page - 1) & ~(s->page - 1);
    s->guard = has_rlimit(RLIMIT_AS) ? DUDA_STACK_POOL_GUARD / 16 : DUDA_STACK_POOL_GUARD;
    return s;
}

void duda_stack_pool_free(struct duda_stack_pool *s)
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

/* Maps everything writable, then makes the guards inaccessible. A slab is a single mapping, but all of it
 * counts toward data limits and committed memory. */
static bool map_slab_with_guards(struct slab *slab)
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

/* Maps everything inaccessible, then makes the stacks writable. Only stacks count toward limits, but each
 * stack and each guard is a separate mapping. */
static bool map_slab_page_by_page(struct slab *slab)
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
    slab->n = opened; /* a limit may allow only some of the stacks */
    return opened > 0;
}

static struct slab *map_slab(const struct duda_stack_pool *s, size_t guard, size_t n)
{
    struct slab *slab = mk_mem_zalloc(1, sizeof *slab + n * sizeof slab->stacks[0]);
    if (!slab)
        return NULL;
    slab->guard = guard;
    slab->step = guard + s->size;
    slab->n = n;
    slab->size = n * slab->step;
    if ((!has_rlimit(RLIMIT_DATA) && map_slab_with_guards(slab)) || map_slab_page_by_page(slab))
        return slab;
    mk_mem_free(slab);
    return NULL;
}

/* If address space is scarce, guards shrink: code with stack clash protection, as in services and packages,
 * needs a guard of only one page. If that is not enough, fewer stacks are mapped together. */
static struct slab *create_slab(struct duda_stack_pool *s)
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

static void add_slab(struct duda_stack_pool *s)
{
    struct slab *slab = create_slab(s);
    if (!slab)
        return;
    (void)madvise(slab->base, slab->size, MADV_NOHUGEPAGE); /* most stacks only need one page */
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

static struct duda_stack *pop_warm_stack(struct duda_stack_pool *s)
{
    struct duda_stack *stack = s->warm;
    s->warm = stack->next;
    s->n_warm--;
    return stack;
}

static void discard_stack_pages(struct duda_stack_pool *s, struct duda_stack *stack)
{
    (void)madvise(stack->low, stack->size, MADV_DONTNEED);
    stack->next = s->cold;
    s->cold = stack;
}

/* Keeps as many warm stacks as handlers wait at once: returning a page costs as much as two system calls, and
 * so does the page fault on its next use. After a burst, surplus stacks become cold. */
static void trim_warm_stacks(struct duda_stack_pool *s)
{
    for (; s->least_warm; s->least_warm--)
        discard_stack_pages(s, pop_warm_stack(s));
    s->least_warm = s->n_warm;
    s->n_taken = 0;
}

struct duda_stack *duda_stack_pool_acquire(struct duda_stack_pool *s)
{
    struct duda_stack *stack;
    if (++s->n_taken > DUDA_STACK_POOL_SPAN)
        trim_warm_stacks(s);
    if (s->warm) {
        stack = pop_warm_stack(s);
    } else {
        if (!s->cold)
            add_slab(s);
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

void duda_stack_pool_release(struct duda_stack *stack)
{
    struct duda_stack_pool *s = stack->of;
    s->used--;
    stack->user = NULL;
    if (s->n_warm >= DUDA_STACK_POOL_WARM_MAX) {
        discard_stack_pages(s, stack);
        return;
    }
    s->n_warm++;
    stack->next = s->warm;
    s->warm = stack;
}

struct duda_stack *duda_stack_pool_find_by_guard(struct duda_stack_pool *s, const void *address)
{
    uintptr_t at = (uintptr_t)address;
    for (struct slab *slab = s->slabs; slab; slab = slab->next) {
        uintptr_t base = (uintptr_t)slab->base;
        if (at >= base && at < base + slab->size)
            return (at - base) % slab->step < slab->guard ? &slab->stacks[(at - base) / slab->step] : NULL;
    }
    return NULL;
}

size_t duda_stack_pool_count_used(const struct duda_stack_pool *s)
{
    return s->used;
}

size_t duda_stack_pool_count_all(const struct duda_stack_pool *s)
{
    return s->made;
}
