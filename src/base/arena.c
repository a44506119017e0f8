/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/poison.h"

struct mk_arena_block {
    struct mk_arena_block *next;
    size_t size; /* size of the whole block */
};

struct mk_arena_cleanup {
    struct mk_arena_cleanup *next;
    void (*fn)(void *data);
    void *data;
};

enum { SMALL_BLOCK = 512 };
enum { BLOCK_HEAD = (sizeof(struct mk_arena_block) + MK_ARENA_ALIGN - 1) / MK_ARENA_ALIGN * MK_ARENA_ALIGN };

void mk_arena_cache_init(struct mk_arena_cache *c, size_t max)
{
    *c = (struct mk_arena_cache){.max = max};
}

void mk_arena_cache_fini(struct mk_arena_cache *c)
{
    while (c->spare) {
        struct mk_arena_block *b = c->spare;
        c->spare = b->next;
        MK_UNPOISON(b, b->size);
        mk_mem_free(b);
    }
    c->n = 0;
}

static struct mk_arena_block *acquire_block(struct mk_arena_cache *c, size_t size)
{
    if (c && c->spare && size == MK_ARENA_BLOCK) {
        struct mk_arena_block *b = c->spare;
        c->spare = b->next;
        c->n--;
        MK_UNPOISON(b, MK_ARENA_BLOCK);
        return b;
    }
    struct mk_arena_block *b = mk_mem_alloc(size);
    if (b)
        b->size = size;
    return b;
}

static void release_block(struct mk_arena_cache *c, struct mk_arena_block *b)
{
    if (c && c->n < c->max && b->size == MK_ARENA_BLOCK && mk_may_recycle_memory()) {
        b->next = c->spare;
        c->spare = b;
        c->n++;
        MK_POISON((char *)b + BLOCK_HEAD, MK_ARENA_BLOCK - BLOCK_HEAD); /* the sanitizer reports later uses */
    } else {
        mk_mem_free(b);
    }
}

void mk_arena_init(struct mk_arena *a, struct mk_arena_cache *cache)
{
    *a = (struct mk_arena){.cache = cache};
}

void mk_arena_destroy(struct mk_arena *a)
{
    while (a->cleanups) {
        struct mk_arena_cleanup *c = a->cleanups;
        a->cleanups = c->next;
        c->fn(c->data);
    }
    struct mk_arena_cache *cache = a->cache;
    for (struct mk_arena_block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        release_block(cache, b);
    }
}

void mk_arena_fini(struct mk_arena *a)
{
    struct mk_arena_cache *cache = a->cache;
    mk_arena_destroy(a);
    mk_arena_init(a, cache);
}

/* An allocation larger than a standard block gets a block of its own; the partly used block stays current. */
static void *alloc_oversized_block(struct mk_arena *a, size_t size)
{
    struct mk_arena_block *b = acquire_block(a->cache, BLOCK_HEAD + size);
    if (!b)
        return NULL;
    if (a->blocks) {
        b->next = a->blocks->next;
        a->blocks->next = b;
    } else {
        b->next = NULL;
        a->blocks = b;
    }
    return (char *)b + BLOCK_HEAD;
}

bool mk_arena_set_first_block(struct mk_arena *a, size_t size)
{
    size = BLOCK_HEAD + (size + MK_ARENA_ALIGN - 1) / MK_ARENA_ALIGN * MK_ARENA_ALIGN;
    struct mk_arena_block *b = acquire_block(a->cache, size);
    if (!b)
        return false;
    b->next = NULL;
    a->blocks = b;
    a->next = (char *)b + BLOCK_HEAD;
    a->end = (char *)b + size;
    a->is_small = true;
    return true;
}

static void *alloc_in_new_block(struct mk_arena *a, size_t size)
{
    size_t whole = a->is_small ? mk_max(SMALL_BLOCK, BLOCK_HEAD + size) : MK_ARENA_BLOCK;
    struct mk_arena_block *b = acquire_block(a->cache, whole);
    if (!b)
        return NULL;
    b->next = a->blocks;
    a->blocks = b;
    a->next = (char *)b + BLOCK_HEAD + size;
    a->end = (char *)b + whole;
    return (char *)b + BLOCK_HEAD;
}

/* Slow path: the current block has too little free space. */
void *mk_arena_alloc_slow(struct mk_arena *a, size_t size)
{
    void *p = NULL;
    if (size <= SIZE_MAX / 2) {
        size = (size + MK_ARENA_ALIGN - 1) & ~(size_t)(MK_ARENA_ALIGN - 1);
        p = size > MK_ARENA_BLOCK - BLOCK_HEAD ? alloc_oversized_block(a, size) : alloc_in_new_block(a, size);
    }
    a->failed |= !p;
    return p;
}

MK_NOINLINE void *mk_arena_alloc(struct mk_arena *a, size_t size)
{
    return mk_arena_alloc_inline(a, size);
}

void *mk_arena_zalloc(struct mk_arena *a, size_t n, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(n, size, &total))
        total = SIZE_MAX;
    void *p = mk_arena_alloc(a, total);
    return p ? memset(p, 0, total) : NULL;
}

mk_str mk_arena_copy(struct mk_arena *a, mk_str s)
{
    char *p = mk_arena_alloc(a, s.len + 1);
    if (!p)
        return MK_STR_NULL;
    if (s.len)
        memcpy(p, s.p, s.len);
    p[s.len] = '\0';
    return mk_str_of(p, s.len);
}

mk_str mk_arena_printf(struct mk_arena *a, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *p = mk_arena_alloc(a, len < 0 ? SIZE_MAX : (size_t)len + 1);
    if (!p)
        return MK_STR_NULL;
    va_start(args, fmt);
    vsnprintf(p, (size_t)len + 1, fmt, args);
    va_end(args);
    return mk_str_of(p, (size_t)len);
}

bool mk_arena_append(struct mk_arena *a, void *vector, size_t *n, const void *item, size_t size)
{
    char *at;
    memcpy(&at, vector, sizeof at);
    if ((*n & (*n - 1)) == 0) { /* full */
        char *more = mk_arena_zalloc(a, *n ? *n * 2 : 1, size);
        if (!more)
            return false;
        if (*n)
            memcpy(more, at, *n * size);
        at = more;
        memcpy(vector, &at, sizeof at);
    }
    memcpy(at + (*n)++ * size, item, size);
    return true;
}

bool mk_arena_add_cleanup(struct mk_arena *a, void (*fn)(void *data), void *data)
{
    struct mk_arena_cleanup *c = mk_arena_alloc_inline(a, sizeof *c);
    if (!c)
        return false;
    *c = (struct mk_arena_cleanup){.next = a->cleanups, .fn = fn, .data = data};
    a->cleanups = c;
    return true;
}
