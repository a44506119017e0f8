/* SPDX-License-Identifier: Apache-2.0 */
/* One place per worker process, and the server's history since its start, in memory that the master shares
 * with all workers. */
#ifndef MK_WORKER_SCOREBOARD_H
#define MK_WORKER_SCOREBOARD_H

#include "base/buf.h"
#include "base/err.h"
#include "proto/counters.h"
#include "worker/reload_stats.h"

/* The master writes it, except the counters, which the worker in this place writes. */
struct mk_scoreboard_slot {
    int64_t pid;      /* 0: free; of a thread, where workers are threads */
    uint64_t started; /* seconds since 1970; 0: neither it nor any later place was ever used */
    bool leaving;     /* got the order to end */
    struct mk_counters counters;
};

/* Its description until something else is known. */
#define MK_SCOREBOARD_FRESH "before its first request"

struct mk_scoreboard {
    struct mk_scoreboard_slot *at;
    size_t n;
    int64_t master, began;           /* its process ID and start time */
    struct mk_reload_stats *history; /* NULL without a master */
};

mk_err mk_scoreboard_open(struct mk_scoreboard *p, size_t n) MK_MUST_USE;
void mk_scoreboard_close(struct mk_scoreboard *p);

/* What the worker in this place works on: its request, and the moves of that connection. */
void mk_scoreboard_describe_slot(const struct mk_scoreboard_slot *place, struct mk_buf *out);

/* The place goes to another worker. */
void mk_scoreboard_reassign_slot(struct mk_scoreboard *p, struct mk_scoreboard_slot *place, uint64_t now);

#endif
