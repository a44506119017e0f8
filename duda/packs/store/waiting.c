/* SPDX-License-Identifier: Apache-2.0 */
#include "waiting.h"

uint32_t store_waiting_load(struct store_waiting *w)
{
    return atomic_fetch_add(&w->generation, 1) + 1;
}

uint32_t store_waiting_place(uint32_t generation, unsigned worker)
{
    return worker % STORE_WORKERS_MAX * STORE_GENERATIONS + generation % STORE_GENERATIONS;
}

void store_waiting_note(struct store_waiting *w, uint32_t place, uint64_t until)
{
    uint64_t before = atomic_load(&w->until[place]);
    uint32_t n = atomic_load(&w->n);
    while (before < until && !atomic_compare_exchange_weak(&w->until[place], &before, until))
        continue;
    while (n <= place && !atomic_compare_exchange_weak(&w->n, &n, place + 1))
        continue;
}

bool store_waiting_others(struct store_waiting *w, uint32_t place, uint64_t now)
{
    uint32_t n = atomic_load(&w->n);
    for (uint32_t i = 0; i < n; i++)
        if (i != place && atomic_load(&w->until[i]) > now)
            return true;
    return false;
}
