/* SPDX-License-Identifier: Apache-2.0 */
/* The locks of a worker: names, each with a queue whose first waiter holds the lock. Knows nothing about its
 * waiters. */
#ifndef DUDA_SERVICE_LOCK_TABLE_H
#define DUDA_SERVICE_LOCK_TABLE_H

#include <duda/lock.h>

struct duda_lock_table;
struct duda_lock_queue;

/* Holds one lock, or waits for it. */
struct duda_lock_waiter {
    struct duda_lock_waiter *next, **at; /* links of the queue */
    struct duda_lock_waiter *sibling;    /* next waiter of the same owner; managed by the owner */
    struct duda_lock_queue *lock;
    void *owner;
    void *handler; /* for the caller: the handler that acquires the lock; never read here */
    void (*on_lock_granted)(void *owner); /* called when a waiter gets the lock */
};

struct duda_lock_table *duda_lock_table_new(void);
/* Frees the table. Dequeue all waiters first. NULL is allowed. */
void duda_lock_table_free(struct duda_lock_table *l);

/* Returns 0 or -ENOMEM. The caller owns the waiter, and sets `owner` and on_lock_granted beforehand. */
int duda_lock_table_enqueue(struct duda_lock_table *l, mk_str name, struct duda_lock_waiter *c);
bool duda_lock_waiter_has_lock(const struct duda_lock_waiter *c);
/* The waiter that holds the lock for which `c` waits; `c` itself if it has the lock. */
const struct duda_lock_waiter *duda_lock_waiter_holder(const struct duda_lock_waiter *c);
mk_str duda_lock_waiter_name(const struct duda_lock_waiter *c);
/* Releases the lock, or stops waiting for it. */
void duda_lock_table_dequeue(struct duda_lock_table *l, struct duda_lock_waiter *c);

#endif
