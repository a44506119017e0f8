/* SPDX-License-Identifier: Apache-2.0 */
#include "seats.h"

#include <unistd.h>

/* A worker that died still has its seats. */
static bool is_alive(const struct mk_worker *w, int64_t process)
{
    struct mk_worker_stats stats;
    if (process == getpid())
        return true;
    for (size_t i = 0; process > 0 && mk_worker_stats_at(w, i, &stats); i++)
        if (stats.pid == process)
            return true;
    return false;
}

int cheetah_seat_take(struct cheetah_seats *seats, unsigned n, const struct mk_worker *w)
{
    for (unsigned i = 0; i < n; i++) {
        int_fast64_t process = atomic_load(&seats->process[i]);
        bool is_free = process == 0 || !is_alive(w, process);
        if (is_free && atomic_compare_exchange_strong(&seats->process[i], &process, getpid()))
            return (int)i;
    }
    return -1;
}

void cheetah_seat_leave(struct cheetah_seats *seats, int seat)
{
    int_fast64_t own = getpid();
    atomic_compare_exchange_strong(&seats->process[seat], &own, 0);
}

unsigned cheetah_seats_count(struct cheetah_seats *seats, const struct mk_worker *w)
{
    unsigned n = 0;
    for (unsigned i = 0; i < CHEETAH_SEATS; i++)
        n += is_alive(w, atomic_load(&seats->process[i]));
    return n;
}
