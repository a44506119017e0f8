/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/reload_stats.h"

#include "base/clock.h"

void mk_reload_stats_begin(struct mk_reload_stats *h)
{
    atomic_store(&h->reloading, true);
}

void mk_reload_stats_succeeded(struct mk_reload_stats *h)
{
    atomic_fetch_add(&h->reloads, 1);
    atomic_store(&h->reloaded_at, mk_clock_unix());
    atomic_store(&h->last_failed, false);
    atomic_store(&h->reloading, false);
}

void mk_reload_stats_failed(struct mk_reload_stats *h, mk_str error)
{
    size_t len = mk_min(error.len, sizeof h->why - 1);
    if (len)
        memcpy(h->why, error.p, len);
    h->why[len] = '\0';
    atomic_fetch_add(&h->failed_reloads, 1);
    atomic_store(&h->failed_at, mk_clock_unix());
    atomic_store(&h->last_failed, true);
    atomic_store(&h->reloading, false);
}
