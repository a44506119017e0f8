/* SPDX-License-Identifier: Apache-2.0 */
/* The locks of a worker: names, each with a queue, whose first one has the lock. It must not know who waits.
 */
#ifndef DUDA_SERVICE_LOCKS_H
#define DUDA_SERVICE_LOCKS_H

#include <duda/lock.h>

struct duda_locks;
struct duda_locked;

/* Has one lock, or waits for it. */
struct duda_claim {
    struct duda_claim *next, **at; /* in the queue */
    struct duda_claim *sibling;    /* of the same owner; the owner's */
    struct duda_locked *lock;
    void *owner;
    void (*on_turn)(void *owner); /* it waited, and has the lock now */
};

struct duda_locks *duda_locks_new(void);
/* All claims have left. NULL is fine. */
void duda_locks_free(struct duda_locks *l);

/* 0 or -ENOMEM. The claim is the caller's, who sets owner and on_turn. */
int duda_locks_enter(struct duda_locks *l, mk_str name, struct duda_claim *c);
bool duda_locks_has(const struct duda_claim *c);
mk_str duda_locks_name(const struct duda_claim *c);
/* Gives the lock back, or waits for it no more. */
void duda_locks_leave(struct duda_locks *l, struct duda_claim *c);

#endif
