/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory that says which workers have handlers that wait for a lock. A worker may die at any moment,
 * and a worker of an earlier configuration may run beside one with the same number, so there are no counters,
 * which a dying worker could leave inconsistent. */
#ifndef DUDA_STORE_LOCK_WAITERS_H
#define DUDA_STORE_LOCK_WAITERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { STORE_WORKERS_MAX = 128, STORE_GENERATIONS = 4 };

struct store_lock_waiters {
    _Atomic uint32_t generation; /* generation of the current configuration */
    _Atomic uint32_t n;          /* slots in use */
    /* Per slot: the time (system clock, in milliseconds) until which a handler of the worker expects a
     * notification. After that the handler polls. */
    _Atomic uint64_t until[STORE_WORKERS_MAX * STORE_GENERATIONS];
};

/* Returns the generation of a new configuration. */
uint32_t store_lock_waiters_new_generation(struct store_lock_waiters *w);
/* Returns the slot of a worker. */
uint32_t store_lock_waiters_slot(uint32_t generation, unsigned worker);
/* Records that a handler of the worker waits. */
void store_lock_waiters_mark(struct store_lock_waiters *w, uint32_t slot, uint64_t until);
/* Returns whether a handler of another worker waits. */
bool store_lock_waiters_has_others(struct store_lock_waiters *w, uint32_t slot, uint64_t now);

#endif
