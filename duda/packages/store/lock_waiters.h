/* SPDX-License-Identifier: Apache-2.0 */
/* In memory that all workers share: whether handlers of a worker wait for a lock. It knows no worker. A
 * worker may die at any moment, and one of an earlier configuration may still be at work beside one of the
 * same number: nothing is counted, so nothing can be left behind. */
#ifndef DUDA_STORE_LOCK_WAITERS_H
#define DUDA_STORE_LOCK_WAITERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { STORE_WORKERS_MAX = 128, STORE_GENERATIONS = 4 };

struct store_lock_waiters {
    _Atomic uint32_t generation; /* of the configuration that was loaded last */
    _Atomic uint32_t n;          /* places that were used */
    /* Until when (milliseconds of the system's clock) a handler of that worker waits to be told. Behind that
     * it looks by itself. */
    _Atomic uint64_t until[STORE_WORKERS_MAX * STORE_GENERATIONS];
};

/* A new configuration: its number. */
uint32_t store_lock_waiters_new_generation(struct store_lock_waiters *w);
/* The place of a worker. */
uint32_t store_lock_waiters_slot(uint32_t generation, unsigned worker);
/* One of its handlers waits. */
void store_lock_waiters_mark(struct store_lock_waiters *w, uint32_t slot, uint64_t until);
/* Does any of another place? */
bool store_lock_waiters_has_others(struct store_lock_waiters *w, uint32_t slot, uint64_t now);

#endif
