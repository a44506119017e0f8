/* SPDX-License-Identifier: Apache-2.0 */
#include "service/memory.h"

#include <errno.h>
#include <monkey/allocator.h>
#include <stddef.h>
#include <stdio.h>

#include "fiber/fiber.h"
#include "fiber/sanitizer_hooks.h"
#include "service/crash_table.h"

/* A worker caches 1 MB. Otherwise, with many waiting handlers, libc grows and trims the heap for each of
 * them. */
enum {
    BLOCK = 512 - 32,
    BLOCKS_KEPT = 256,
    CHUNK = 4096 - 64,
    CHUNKS_KEPT = 256,
    ALIGNED = _Alignof(max_align_t)
};

/* `start` is the number of bytes in all earlier chunks, so a mark is a single number. */
struct duda_chunk {
    struct duda_chunk *before;
    size_t start, used, cap;
    _Alignas(max_align_t) char buf[];
};

struct duda_cleanup {
    struct duda_cleanup *next;
    void (*fn)(void *ctx);
    void *ctx;
};

/* ---- AddressSanitizer ---- */

#ifdef DUDA_HAS_ASAN
static void asan_poison(const void *p, size_t size)
{
    __asan_poison_memory_region(p, size);
}

static void asan_unpoison(const void *p, size_t size)
{
    __asan_unpoison_memory_region(p, size);
}

/* With a sanitizer in Duda itself, memory is cached as usual: Duda's tests inspect the cached memory. */
static bool may_cache_memory(void)
{
    return true;
}
#else
/* Duda is built without AddressSanitizer here, but the service may be built with it. These functions are NULL
 * unless the library of AddressSanitizer was loaded before Duda. */
void __asan_poison_memory_region(const volatile void *p, size_t size) __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void *p, size_t size) __attribute__((weak));

static void asan_poison(const void *p, size_t size)
{
    if (__asan_poison_memory_region)
        __asan_poison_memory_region(p, size);
}

static void asan_unpoison(const void *p, size_t size)
{
    if (__asan_unpoison_memory_region)
        __asan_unpoison_memory_region(p, size);
}

/* In a service with AddressSanitizer, memory is freed instead, so that the sanitizer reports uses after the
 * end of the request. */
static bool may_cache_memory(void)
{
    return !__asan_poison_memory_region;
}
#endif

/* ---- Development mode ---- */

/* Freed memory is overwritten with this text. A string that a service has kept beyond its lifetime then reads
 * as the text, from its first byte on, because allocations are aligned to the size of the text. Without the
 * text, the string would usually still be intact in a test. */
static const char freed_text[ALIGNED] = "[freed memory]";

bool duda_memory_is_dev_mode(const struct duda_worker_ctx *worker_ctx)
{
    return worker_ctx->rules && worker_ctx->rules->tries;
}

void duda_memory_fill_freed(char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = freed_text[i % sizeof freed_text];
}

static void fill_freed_chunk(const struct duda_worker_ctx *worker_ctx, char *p, size_t n)
{
    if (!duda_memory_is_dev_mode(worker_ctx))
        return;
    asan_unpoison(p, n);
    duda_memory_fill_freed(p, n);
}

static bool is_between(const void *p, const char *first, size_t n)
{
    return (uintptr_t)p - (uintptr_t)first < n;
}

bool duda_memory_contains(const struct duda_ctx *d, const void *p)
{
    const struct duda_stack *stack = d->fiber ? duda_fiber_stack(d->fiber) : NULL;
    if (stack && is_between(p, stack->low, stack->size))
        return true;
    for (const struct duda_chunk *c = d->chunk; c; c = c->before)
        if (is_between(p, c->buf, c->used))
            return true;
    return false;
}

size_t duda_memory_find_pointer(const struct duda_ctx *d, const void *data, size_t size)
{
    for (size_t at = 0; at + sizeof(void *) <= size; at += sizeof(void *)) {
        const void *p;
        memcpy(&p, (const char *)data + at, sizeof p);
        if (duda_memory_contains(d, p))
            return at;
    }
    return size;
}

/* ---- Handlers ---- */

/* The block of memory for one handler's context, in use or in the cache. */
struct duda_block {
    struct duda_block *next;
    size_t cap;
    _Alignas(max_align_t) char buf[];
};

void *duda_memory_acquire_block(struct duda_worker_ctx *worker_ctx, size_t size)
{
    struct duda_block *b = size <= BLOCK ? worker_ctx->blocks : NULL;
    size_t cap = size <= BLOCK ? BLOCK : size;
    if (b) {
        worker_ctx->blocks = b->next;
        worker_ctx->n_blocks--;
    } else if (!(b = mk_mem_alloc(sizeof *b + cap))) {
        return NULL;
    }
    b->cap = cap;
    return b->buf;
}

void duda_memory_release_block(struct duda_worker_ctx *worker_ctx, void *memory)
{
    struct duda_block *b = (struct duda_block *)(void *)((char *)memory - offsetof(struct duda_block, buf));
    if (b->cap != BLOCK || worker_ctx->n_blocks >= BLOCKS_KEPT || !may_cache_memory()) {
        mk_mem_free(b);
        return;
    }
    b->next = worker_ctx->blocks;
    worker_ctx->blocks = b;
    worker_ctx->n_blocks++;
}

/* ---- Allocations of handlers ---- */

/* Acquires a chunk. Its bytes are poisoned until duda_alloc() returns them. */
static struct duda_chunk *acquire_chunk(struct duda_worker_ctx *worker_ctx, size_t cap)
{
    struct duda_chunk *c = cap == CHUNK ? worker_ctx->chunks : NULL;
    if (c) {
        worker_ctx->chunks = c->before;
        worker_ctx->n_chunks--;
    } else if ((c = mk_mem_alloc(sizeof *c + cap))) {
        asan_poison(c->buf, cap);
    }
    return c;
}

static void free_chunk(struct duda_chunk *c)
{
    asan_unpoison(c->buf, c->cap); /* a custom allocator of the program does not know about poisoning */
    mk_mem_free(c);
}

static void release_chunk(struct duda_worker_ctx *worker_ctx, struct duda_chunk *c)
{
    fill_freed_chunk(worker_ctx, c->buf, c->used);
    if (c->cap != CHUNK || worker_ctx->n_chunks >= CHUNKS_KEPT || !may_cache_memory()) {
        free_chunk(c);
        return;
    }
    c->before = worker_ctx->chunks;
    worker_ctx->chunks = c;
    worker_ctx->n_chunks++;
    asan_poison(c->buf, c->cap);
}

void duda_memory_free_cache(struct duda_worker_ctx *worker_ctx)
{
    for (struct duda_chunk *c = worker_ctx->chunks, *next; c; c = next) {
        next = c->before;
        free_chunk(c);
    }
    for (struct duda_block *b = worker_ctx->blocks, *next; b; b = next) {
        next = b->next;
        mk_mem_free(b);
    }
}

static struct duda_chunk *push_chunk(struct duda_ctx *d, size_t size)
{
    size_t cap = size > CHUNK ? size : CHUNK;
    struct duda_chunk *c = acquire_chunk(d->worker_ctx, cap);
    if (!c)
        return NULL;
    c->before = d->chunk;
    c->start = d->chunk ? d->chunk->start + d->chunk->cap : 0;
    c->used = 0;
    c->cap = cap;
    d->chunk = c;
    return c;
}

void *duda_alloc(struct duda_ctx *d, size_t size)
{
    struct duda_chunk *c = d->chunk;
    const size_t requested = size;
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + ALIGNED - 1) & ~(size_t)(ALIGNED - 1);
    if (!c || c->cap - c->used < size)
        c = push_chunk(d, size);
    if (!c)
        return NULL;
    void *p = c->buf + c->used;
    c->used += size;
    asan_unpoison(p, requested);
    return p;
}

static void *alloc_from_handler(void *ctx, size_t size)
{
    return duda_alloc(ctx, size);
}

/* Declared in include/duda/allocator.h. */
struct mk_allocator duda_allocator_of(struct duda_ctx *d)
{
    return (struct mk_allocator){alloc_from_handler, d};
}

mk_str duda_strdup(struct duda_ctx *d, mk_str text)
{
    char *p = text.len < SIZE_MAX / 2 ? duda_alloc(d, text.len + 1) : NULL;
    if (!p)
        return MK_STR_NULL;
    if (text.len)
        memcpy(p, text.p, text.len);
    p[text.len] = '\0';
    return mk_str_of(p, text.len);
}

mk_str duda_sprintf(struct duda_ctx *d, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *p = n >= 0 ? duda_alloc(d, (size_t)n + 1) : NULL;
    if (!p)
        return MK_STR_NULL;
    va_start(args, fmt);
    vsnprintf(p, (size_t)n + 1, fmt, args);
    va_end(args);
    return mk_str_of(p, (size_t)n);
}

size_t duda_arena_mark(struct duda_ctx *d)
{
    return d->chunk ? d->chunk->start + d->chunk->used : 0;
}

static void pop_chunk(struct duda_ctx *d)
{
    struct duda_chunk *c = d->chunk;
    d->chunk = c->before;
    release_chunk(d->worker_ctx, c);
}

void duda_arena_rewind(struct duda_ctx *d, size_t mark)
{
    while (d->chunk && d->chunk->start > mark)
        pop_chunk(d);
    if (d->chunk && mark - d->chunk->start < d->chunk->used) {
        fill_freed_chunk(d->worker_ctx, d->chunk->buf + (mark - d->chunk->start),
                         d->chunk->used - (mark - d->chunk->start));
        d->chunk->used = mark - d->chunk->start;
        asan_poison(d->chunk->buf + d->chunk->used, d->chunk->cap - d->chunk->used);
    }
    if (d->chunk && d->chunk->used == 0) /* a long-waiting handler holds no unused memory */
        pop_chunk(d);
}

int duda_defer(struct duda_ctx *d, void (*fn)(void *ctx), void *ctx)
{
    /* Not allocated in memory that duda_arena_rewind() frees: a cleanup outlives the mark after which it was
     * registered. */
    struct duda_cleanup *cleanup = mk_mem_alloc(sizeof *cleanup);
    if (!cleanup) {
        fn(ctx);
        return -ENOMEM;
    }
    *cleanup = (struct duda_cleanup){.next = d->cleanups, .fn = fn, .ctx = ctx};
    d->cleanups = cleanup;
    return 0;
}

bool duda_undefer(struct duda_ctx *d, void (*fn)(void *ctx), void *ctx)
{
    struct duda_cleanup **at = &d->cleanups, *cleanup;
    while ((cleanup = *at) && (cleanup->fn != fn || cleanup->ctx != ctx))
        at = &cleanup->next;
    if (!cleanup)
        return false;
    *at = cleanup->next;
    mk_mem_free(cleanup);
    return true;
}

void duda_memory_run_cleanups(struct duda_ctx *d)
{
    while (d->cleanups) {
        struct duda_cleanup *cleanup = d->cleanups;
        d->cleanups = cleanup->next;
        cleanup->fn(cleanup->ctx);
        mk_mem_free(cleanup);
    }
}

void duda_memory_free_chunks(struct duda_ctx *d)
{
    while (d->chunk)
        pop_chunk(d);
}
