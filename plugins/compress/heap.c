/* SPDX-License-Identifier: Apache-2.0 */
#include "heap.h"

#include <monkey/mem.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

/* A block begins with a unit that contains the number of the units that follow. */
struct unit {
    alignas(max_align_t) size_t n;
    bool used;
};

struct heap {
    size_t n;
    struct unit units[];
};

struct heap *compress_heap_new(size_t size)
{
    struct heap *r = mk_mem_alloc(size);
    if (!r)
        return NULL;
    r->n = (size - sizeof *r) / sizeof r->units[0];
    r->units[0] = (struct unit){.n = r->n - 1};
    return r;
}

void compress_heap_destroy(struct heap *r)
{
    mk_mem_free(r);
}

/* Merges the block with all free blocks after it. */
static void merge_free_units(struct heap *r, size_t at)
{
    struct unit *u = &r->units[at];
    for (size_t next = at + 1 + u->n; next < r->n && !r->units[next].used; next = at + 1 + u->n)
        u->n += 1 + r->units[next].n;
}

static void *use_units(struct heap *r, size_t at, size_t n)
{
    struct unit *u = &r->units[at];
    if (u->n > n) {
        r->units[at + 1 + n] = (struct unit){.n = u->n - n - 1};
        u->n = n;
    }
    u->used = true;
    return u + 1;
}

void *compress_heap_alloc(struct heap *r, size_t size)
{
    size_t n = size / sizeof(struct unit) + 1;
    for (size_t at = 0; at < r->n; at += 1 + r->units[at].n) {
        if (r->units[at].used)
            continue;
        merge_free_units(r, at);
        if (r->units[at].n >= n)
            return use_units(r, at, n);
    }
    return mk_mem_alloc(size);
}

void compress_heap_free(struct heap *r, void *p)
{
    uintptr_t at = (uintptr_t)p, from = (uintptr_t)r->units, to = (uintptr_t)(r->units + r->n);
    if (at >= from && at < to)
        ((struct unit *)p - 1)->used = false;
    else
        mk_mem_free(p);
}
