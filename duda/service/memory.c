/* SPDX-License-Identifier: Apache-2.0 */
#include "service/memory.h"

#include <duda/allocator.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#include "fiber/checkers.h"

/* A worker keeps 1 MB. Without that, where many handlers wait, libc grows and trims the heap for each of
 * them. */
enum {
    BLOCK = 512 - 32,
    BLOCKS_KEPT = 256,
    CHUNK = 4096 - 64,
    CHUNKS_KEPT = 256,
    ALIGNED = _Alignof(max_align_t)
};

/* `start` counts the bytes of all chunks before it, so that a mark is one number. */
struct duda_chunk {
    struct duda_chunk *before;
    size_t start, used, cap;
    _Alignas(max_align_t) char room[];
};

struct duda_duty {
    struct duda_duty *next;
    void (*fn)(void *ctx);
    void *ctx;
};

/* ---- The address sanitizer ---- */

#ifdef DUDA_HAS_ASAN
static void poison(const void *p, size_t size)
{
    __asan_poison_memory_region(p, size);
}

static void unpoison(const void *p, size_t size)
{
    __asan_unpoison_memory_region(p, size);
}

/* Our own tests inspect the memory that is kept. */
static bool may_keep(void)
{
    return true;
}
#else
/* Only a service may be built with it: then these are there when the library was loaded first. */
void __asan_poison_memory_region(const volatile void *p, size_t size) __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void *p, size_t size) __attribute__((weak));

static void poison(const void *p, size_t size)
{
    if (__asan_poison_memory_region)
        __asan_poison_memory_region(p, size);
}

static void unpoison(const void *p, size_t size)
{
    if (__asan_unpoison_memory_region)
        __asan_unpoison_memory_region(p, size);
}

/* Else memory is freed, and the sanitizer reports uses after the end of its request. */
static bool may_keep(void)
{
    return !__asan_poison_memory_region;
}
#endif

/* ---- Handlers ---- */

/* Free, or followed by a handler. */
struct duda_block {
    struct duda_block *next;
    size_t cap;
    _Alignas(max_align_t) char room[];
};

void *duda_memory_take(struct duda_home *home, size_t size)
{
    struct duda_block *b = size <= BLOCK ? home->blocks : NULL;
    size_t cap = size <= BLOCK ? BLOCK : size;
    if (b) {
        home->blocks = b->next;
        home->n_blocks--;
    } else if (!(b = mk_mem_alloc(sizeof *b + cap))) {
        return NULL;
    }
    b->cap = cap;
    return b->room;
}

void duda_memory_give(struct duda_home *home, void *memory)
{
    struct duda_block *b = (struct duda_block *)(void *)((char *)memory - offsetof(struct duda_block, room));
    if (b->cap != BLOCK || home->n_blocks >= BLOCKS_KEPT || !may_keep()) {
        mk_mem_free(b);
        return;
    }
    b->next = home->blocks;
    home->blocks = b;
    home->n_blocks++;
}

/* ---- What they allocate ---- */

/* Its room is poisoned but for what duda_alloc() has given out. */
static struct duda_chunk *take_chunk(struct duda_home *home, size_t cap)
{
    struct duda_chunk *c = cap == CHUNK ? home->chunks : NULL;
    if (c) {
        home->chunks = c->before;
        home->n_chunks--;
    } else if ((c = mk_mem_alloc(sizeof *c + cap))) {
        poison(c->room, cap);
    }
    return c;
}

static void free_chunk(struct duda_chunk *c)
{
    unpoison(c->room, c->cap); /* an allocator of the program knows nothing of it */
    mk_mem_free(c);
}

static void give_chunk(struct duda_home *home, struct duda_chunk *c)
{
    if (c->cap != CHUNK || home->n_chunks >= CHUNKS_KEPT || !may_keep()) {
        free_chunk(c);
        return;
    }
    c->before = home->chunks;
    home->chunks = c;
    home->n_chunks++;
    poison(c->room, c->cap);
}

void duda_memory_stop(struct duda_home *home)
{
    for (struct duda_chunk *c = home->chunks, *next; c; c = next) {
        next = c->before;
        free_chunk(c);
    }
    for (struct duda_block *b = home->blocks, *next; b; b = next) {
        next = b->next;
        mk_mem_free(b);
    }
}

static struct duda_chunk *add_chunk(struct duda *d, size_t size)
{
    size_t cap = size > CHUNK ? size : CHUNK;
    struct duda_chunk *c = take_chunk(d->home, cap);
    if (!c)
        return NULL;
    c->before = d->chunk;
    c->start = d->chunk ? d->chunk->start + d->chunk->cap : 0;
    c->used = 0;
    c->cap = cap;
    d->chunk = c;
    return c;
}

void *duda_alloc(struct duda *d, size_t size)
{
    struct duda_chunk *c = d->chunk;
    const size_t asked = size;
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + ALIGNED - 1) & ~(size_t)(ALIGNED - 1);
    if (!c || c->cap - c->used < size)
        c = add_chunk(d, size);
    if (!c)
        return NULL;
    void *p = c->room + c->used;
    c->used += size;
    unpoison(p, asked);
    return p;
}

static void *from_handler(void *ctx, size_t size)
{
    return duda_alloc(ctx, size);
}

/* In include/duda/allocator.h. */
struct duda_allocator duda_allocator_of(struct duda *d)
{
    return (struct duda_allocator){from_handler, d};
}

mk_str duda_copy(struct duda *d, mk_str text)
{
    char *p = text.len < SIZE_MAX / 2 ? duda_alloc(d, text.len + 1) : NULL;
    if (!p)
        return MK_ABSENT;
    if (text.len)
        memcpy(p, text.p, text.len);
    p[text.len] = '\0';
    return mk_str_of(p, text.len);
}

mk_str duda_print(struct duda *d, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *p = n >= 0 ? duda_alloc(d, (size_t)n + 1) : NULL;
    if (!p)
        return MK_ABSENT;
    va_start(args, fmt);
    vsnprintf(p, (size_t)n + 1, fmt, args);
    va_end(args);
    return mk_str_of(p, (size_t)n);
}

size_t duda_mark(const struct duda *d)
{
    return d->chunk ? d->chunk->start + d->chunk->used : 0;
}

static void drop_chunk(struct duda *d)
{
    struct duda_chunk *c = d->chunk;
    d->chunk = c->before;
    give_chunk(d->home, c);
}

void duda_release(struct duda *d, size_t mark)
{
    while (d->chunk && d->chunk->start > mark)
        drop_chunk(d);
    if (d->chunk && mark - d->chunk->start < d->chunk->used) {
        d->chunk->used = mark - d->chunk->start;
        poison(d->chunk->room + d->chunk->used, d->chunk->cap - d->chunk->used);
    }
    if (d->chunk && d->chunk->used == 0) /* a handler that waits for long owns nothing that it does not use */
        drop_chunk(d);
}

int duda_defer(struct duda *d, void (*fn)(void *ctx), void *ctx)
{
    /* Not in the memory that duda_release() gives back: a duty outlives the mark behind which it was made. */
    struct duda_duty *duty = mk_mem_alloc(sizeof *duty);
    if (!duty) {
        fn(ctx);
        return -ENOMEM;
    }
    *duty = (struct duda_duty){.next = d->duties, .fn = fn, .ctx = ctx};
    d->duties = duty;
    return 0;
}

bool duda_undefer(struct duda *d, void (*fn)(void *ctx), void *ctx)
{
    struct duda_duty **at = &d->duties, *duty;
    while ((duty = *at) && (duty->fn != fn || duty->ctx != ctx))
        at = &duty->next;
    if (!duty)
        return false;
    *at = duty->next;
    mk_mem_free(duty);
    return true;
}

void duda_memory_run_duties(struct duda *d)
{
    while (d->duties) {
        struct duda_duty *duty = d->duties;
        d->duties = duty->next;
        duty->fn(duty->ctx);
        mk_mem_free(duty);
    }
}

void duda_memory_free(struct duda *d)
{
    while (d->chunk)
        drop_chunk(d);
}
