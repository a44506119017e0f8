/* SPDX-License-Identifier: Apache-2.0 */
/* Reload statistics since the server started, in memory shared by the master with all workers. */
#ifndef MK_WORKER_RELOAD_STATS_H
#define MK_WORKER_RELOAD_STATS_H

#include <stdatomic.h>

#include "base/str.h"
#include "connection/counters.h"

enum { MK_RELOAD_STATS_REASON_MAX = 4096 };

/* The master writes this struct but never reads it, because a compromised worker could overwrite it. */
struct mk_reload_stats {
    struct mk_counters past; /* totals of exited workers whose slots were reused */
    atomic_uint_fast64_t reloads, failed_reloads;
    atomic_int_fast64_t reloaded_at, failed_at; /* time of the last success and failure: seconds since 1970 */
    atomic_bool reloading, last_failed;
    char why[MK_RELOAD_STATS_REASON_MAX]; /* error of the last failed reload, NUL-terminated */
};

/* These functions record the start of a reload; its success; or its failure, with the error text in lines. */
void mk_reload_stats_begin(struct mk_reload_stats *h);
void mk_reload_stats_succeeded(struct mk_reload_stats *h);
void mk_reload_stats_failed(struct mk_reload_stats *h, mk_str error);

#endif
