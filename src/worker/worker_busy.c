/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker_busy.h"

#include <monkey/stats.h>

#include "base/log.h"
#include "worker/worker_type.h"

static void on_busy(struct mk_loop *loop, uint64_t duration_us)
{
    struct mk_worker *w = MK_CONTAINER(loop, struct mk_worker, loop);
    if (w->busy_cells)
        mk_stat_observe(w->busy_cells, duration_us);
    if (w->slow_loop_ms && duration_us / 1000 >= w->slow_loop_ms)
        mk_log_warn(w->web.log,
                    "the event loop was blocked for %llu ms, and all connections of this worker had to "
                    "wait: block and compute in other threads (mk_worker_offload())",
                    (unsigned long long)(duration_us / 1000));
}

static void measure_if_used(struct mk_worker *w)
{
    w->loop.on_busy = w->busy_cells || w->slow_loop_ms ? on_busy : NULL;
}

void mk_worker_busy_init(struct mk_worker *w, uint32_t slow_loop_ms)
{
    w->slow_loop_ms = slow_loop_ms;
    measure_if_used(w);
}

void mk_worker_measure_loop(struct mk_worker *w, uint64_t *cells)
{
    w->busy_cells = cells;
    measure_if_used(w);
}
