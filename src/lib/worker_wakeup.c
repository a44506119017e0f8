/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/worker_wakeup.h"

#include <sched.h>

/* Async-signal-safe, as mk_server_stop() promises: no lock, only atomics and write(2). */
void mk_worker_wakeup_all(struct mk_server *s)
{
    atomic_fetch_add(&s->n_waking, 1);
    unsigned n = atomic_load(&s->n_workers);
    for (unsigned i = 0; i < n; i++)
        if (atomic_load(&s->workers[i].serves))
            mk_loop_wakeup(&s->workers[i].worker.loop);
    atomic_fetch_sub(&s->n_waking, 1);
}

/* A caller writes only once to each worker's descriptor, so this loop spins for microseconds. */
void mk_worker_wakeup_wait(struct mk_server *s)
{
    while (atomic_load(&s->n_waking))
        sched_yield();
}
