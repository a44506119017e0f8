/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for stacks: many of one size, each with a guard below it, which costs address space alone. It must not know what
 * runs on them. */
#ifndef DUDA_FIBER_STACK_POOL_H
#define DUDA_FIBER_STACK_POOL_H

#include <stdbool.h>
#include <stddef.h>

/* Stacks of one size, of one thread. */
struct duda_stack_pool;

enum {
    /* What connects, or reads the head of a response, has frames of up to 12 KB, and TLS more. */
    DUDA_STACK_POOL_SIZE_MIN = 32 << 10,
    DUDA_STACK_POOL_SIZE_MAX = 8 << 20,
    /* Below a stack, where address space allows it: a frame up to this size cannot reach another stack unnoticed. With
     * 32 bits, ten thousand stacks must fit into 3 GB. */
    DUDA_STACK_POOL_GUARD = sizeof(void *) > 4 ? 1 << 20 : 64 << 10,
    DUDA_STACK_POOL_WARM_MAX = 1024, /* free ones that keep their memory, at most */
    DUDA_STACK_POOL_SPAN = 4096,     /* of so many that are taken: those that none of them needed lose it */
};

/* `size` is rounded up to pages. NULL: no memory. */
struct duda_stack_pool *duda_stack_pool_new(size_t size);
/* All of them must be free. NULL is fine. */
void duda_stack_pool_free(struct duda_stack_pool *s);

/* One stack of those. `user` is for whoever took it. */
struct duda_stack {
    struct duda_stack *next; /* in a list of free ones */
    struct duda_stack_pool *of;
    char *low; /* above the guard */
    size_t size;
    void *user;
};

/* NULL: no memory, or no more mappings. */
struct duda_stack *duda_stack_pool_acquire(struct duda_stack_pool *s);
void duda_stack_pool_release(struct duda_stack *stack);

/* The stack whose guard holds the address; NULL: none. Makes no call: for handlers of signals. */
struct duda_stack *duda_stack_pool_find_by_guard(struct duda_stack_pool *s, const void *address);

/* How many are in use, and how many there are. */
size_t duda_stack_pool_count_used(const struct duda_stack_pool *s);
size_t duda_stack_pool_count_all(const struct duda_stack_pool *s);

#endif
