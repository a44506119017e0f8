/* SPDX-License-Identifier: Apache-2.0 */
/* In memory that all workers share: whether handlers of a worker wait for a lock. It knows no worker. A
 * worker may die at any moment, and one of an earlier configuration may still be at work beside one of the
 * same number: nothing is counted, so nothing can be left behind. */
#ifndef DUDA_STORE_WAITING_H
#define DUDA_STORE_WAITING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { STORE_WORKERS_MAX = 128, STORE_GENERATIONS = 4 };

struct store_waiting {
    _Atomic uint32_t generation; /* of the configuration that was loaded last */
    _Atomic uint32_t n;          /* places that were used */
    /* Until when (milliseconds of the system's clock) a handler of that worker waits to be told. Behind that
     * it looks by itself. */
    _Atomic uint64_t until[STORE_WORKERS_MAX * STORE_GENERATIONS];
};

/* A new configuration: its number. */
uint32_t store_waiting_load(struct store_waiting *w);
/* The place of a worker. */
uint32_t store_waiting_place(uint32_t generation, unsigned worker);
/* One of its handlers waits. */
void store_waiting_note(struct store_waiting *w, uint32_t place, uint64_t until);
/* Does any of another place? */
bool store_waiting_others(struct store_waiting *w, uint32_t place, uint64_t now);

#endif
