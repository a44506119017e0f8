/* SPDX-License-Identifier: Apache-2.0 */
/* What happened since the server started, in memory that the master shares with all workers. */
#ifndef MK_WORKER_RELOAD_STATS_H
#define MK_WORKER_RELOAD_STATS_H

#include <stdatomic.h>

#include "base/str.h"
#include "proto/counters.h"

enum { MK_RELOAD_STATS_REASON_MAX = 4096 };

/* The master writes it and never reads it, because a worker could overwrite it. */
struct mk_reload_stats {
    struct mk_counters past; /* of ended workers whose places were reused */
    atomic_uint_fast64_t reloads, failed_reloads;
    atomic_int_fast64_t reloaded_at, failed_at; /* the last of each: seconds since 1970 */
    atomic_bool reloading, last_failed;
    char why[MK_RELOAD_STATS_REASON_MAX]; /* why the last reload failed; ends with a NUL */
};

/* The events of a reload: it begins; the new configuration serves; the old one is kept, with the reason as
 * lines. */
void mk_reload_stats_begin(struct mk_reload_stats *h);
void mk_reload_stats_succeeded(struct mk_reload_stats *h);
void mk_reload_stats_failed(struct mk_reload_stats *h, mk_str why);

#endif
