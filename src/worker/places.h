/* SPDX-License-Identifier: Apache-2.0 */
/* One place per worker process, and the server's history since its start, in memory that the master shares
 * with all workers. */
#ifndef MK_WORKER_PLACES_H
#define MK_WORKER_PLACES_H

#include "base/buf.h"
#include "base/err.h"
#include "proto/counters.h"
#include "worker/history.h"

/* The master writes it, except the counters, which the worker in this place writes. */
struct mk_place {
    int64_t pid;      /* 0: free; of a thread, where workers are threads */
    uint64_t started; /* seconds since 1970; 0: neither it nor any later place was ever used */
    bool leaving;     /* got the order to end */
    struct mk_counters counters;
};

/* Its description until something else is known. */
#define MK_PLACES_FRESH "before its first request"

struct mk_places {
    struct mk_place *at;
    size_t n;
    int64_t master, began;      /* its process ID and start time */
    struct mk_history *history; /* NULL without a master */
};

mk_err mk_places_open(struct mk_places *p, size_t n) MK_MUST_USE;
void mk_places_close(struct mk_places *p);

/* What the worker in this place works on: its request, and the moves of that connection. */
void mk_places_describe(const struct mk_place *place, struct mk_buf *out);

/* The place goes to another worker. */
void mk_places_give(struct mk_places *p, struct mk_place *place, uint64_t now);

#endif
