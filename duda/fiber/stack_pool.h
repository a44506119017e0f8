/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of stacks of one size, each with a guard region below it that costs only address space. Independent
 * of what runs on the stacks. */
#ifndef DUDA_FIBER_STACK_POOL_H
#define DUDA_FIBER_STACK_POOL_H

#include <stdbool.h>
#include <stddef.h>

/* Stacks of one size, used by one thread. */
struct duda_stack_pool;

enum {
    /* Connecting, or reading response headers, takes frames of up to 12 KB; TLS takes more. */
    DUDA_STACK_POOL_SIZE_MIN = 32 << 10,
    DUDA_STACK_POOL_SIZE_MAX = 8 << 20,
    /* Size of the guard below a stack, where address space allows it: a frame up to this size cannot reach
     * another stack unnoticed. On 32-bit systems, ten thousand stacks must fit into 3 GB. */
    DUDA_STACK_POOL_GUARD = sizeof(void *) > 4 ? 1 << 20 : 64 << 10,
    DUDA_STACK_POOL_WARM_MAX = 1024, /* maximum number of free stacks that keep their memory */
    DUDA_STACK_POOL_SPAN = 4096,     /* after this many acquisitions, unused free stacks return their
                                      * memory */
};

/* Creates a pool of stacks of `size` bytes, rounded up to whole pages. Returns NULL if out of memory. */
struct duda_stack_pool *duda_stack_pool_new(size_t size);
/* Frees the pool. Release all stacks first. NULL is allowed. */
void duda_stack_pool_free(struct duda_stack_pool *s);

/* A stack of a pool. `user` belongs to the code that acquired it. */
struct duda_stack {
    struct duda_stack *next; /* in the free list */
    struct duda_stack_pool *of;
    char *low; /* above the guard */
    size_t size;
    void *user;
};

/* Acquires a stack. Returns NULL if out of memory, or if the limit of memory mappings is reached. */
struct duda_stack *duda_stack_pool_acquire(struct duda_stack_pool *s);
void duda_stack_pool_release(struct duda_stack *stack);

/* The stack whose guard contains the address; NULL if none does. Async-signal-safe. */
struct duda_stack *duda_stack_pool_find_by_guard(struct duda_stack_pool *s, const void *address);

/* Returns the number of stacks in use. */
size_t duda_stack_pool_count_used(const struct duda_stack_pool *s);
/* Returns the number of all stacks. */
size_t duda_stack_pool_count_all(const struct duda_stack_pool *s);

#endif
