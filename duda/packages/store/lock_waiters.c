/* SPDX-License-Identifier: Apache-2.0 */
#include "lock_waiters.h"

uint32_t store_lock_waiters_new_generation(struct store_lock_waiters *w)
{
    return atomic_fetch_add(&w->generation, 1) + 1;
}

uint32_t store_lock_waiters_slot(uint32_t generation, unsigned worker)
{
    return worker % STORE_WORKERS_MAX * STORE_GENERATIONS + generation % STORE_GENERATIONS;
}

void store_lock_waiters_mark(struct store_lock_waiters *w, uint32_t slot, uint64_t until)
{
    uint64_t before = atomic_load(&w->until[slot]);
    uint32_t n = atomic_load(&w->n);
    while (before < until && !atomic_compare_exchange_weak(&w->until[slot], &before, until))
        continue;
    while (n <= slot && !atomic_compare_exchange_weak(&w->n, &n, slot + 1))
        continue;
}

bool store_lock_waiters_has_others(struct store_lock_waiters *w, uint32_t slot, uint64_t now)
{
    uint32_t n = atomic_load(&w->n);
    for (uint32_t i = 0; i < n; i++)
        if (i != slot && atomic_load(&w->until[i]) > now)
            return true;
    return false;
}
