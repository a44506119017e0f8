/* SPDX-License-Identifier: Apache-2.0 */
#include "session_slots.h"

#include <unistd.h>

/* Detects dead workers, which could not release their slots. */
static bool is_worker_alive(const struct mk_worker *w, int64_t process)
{
    struct mk_worker_stats stats;
    if (process == getpid())
        return true;
    for (size_t i = 0; process > 0 && mk_worker_stats_at(w, i, &stats); i++)
        if (stats.pid == process)
            return true;
    return false;
}

int cheetah_session_slot_acquire(struct cheetah_session_slots *slots, unsigned n, const struct mk_worker *w)
{
    for (unsigned i = 0; i < n; i++) {
        int_fast64_t process = atomic_load(&slots->process[i]);
        bool is_free = process == 0 || !is_worker_alive(w, process);
        if (is_free && atomic_compare_exchange_strong(&slots->process[i], &process, getpid()))
            return (int)i;
    }
    return -1;
}

void cheetah_session_slot_release(struct cheetah_session_slots *slots, int slot)
{
    int_fast64_t own = getpid();
    atomic_compare_exchange_strong(&slots->process[slot], &own, 0);
}

unsigned cheetah_session_slots_n_used(struct cheetah_session_slots *slots, const struct mk_worker *w)
{
    unsigned n = 0;
    for (unsigned i = 0; i < CHEETAH_SESSION_SLOTS_MAX; i++)
        n += is_worker_alive(w, atomic_load(&slots->process[i]));
    return n;
}
