/* SPDX-License-Identifier: Apache-2.0 */
/* Scoreboard: one slot per worker process, and the server's reload statistics, in memory shared by the master
 * with all workers. */
#ifndef MK_WORKER_SCOREBOARD_H
#define MK_WORKER_SCOREBOARD_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "connection/counters.h"

enum { MK_RELOAD_STATS_REASON_MAX = 4096, MK_RELOAD_RESULTS = 16, MK_RELOAD_RESULT_TEXT = 2048 };

/* The result of an order of an administrator. */
struct mk_reload_result {
    atomic_uint_fast64_t id; /* 0: none, or it is being written */
    bool ok;
    char text[MK_RELOAD_RESULT_TEXT]; /* what serves, or the error; NUL-terminated */
};

/* The master writes this struct but never relies on its contents, because a compromised worker could
 * overwrite it. */
struct mk_reload_stats {
    struct mk_counters past; /* totals of exited workers whose slots were reused */
    atomic_uint_fast64_t reloads, failed_reloads;
    atomic_int_fast64_t reloaded_at, failed_at; /* time of the last success and failure: seconds since 1970 */
    atomic_int_fast64_t confirm_at;             /* when an unconfirmed configuration is replaced; 0: none */
    atomic_bool reloading, last_failed;
    char why[MK_RELOAD_STATS_REASON_MAX]; /* error of the last failed reload, NUL-terminated */
    struct mk_reload_result results[MK_RELOAD_RESULTS];
    unsigned next_result; /* index of the oldest result, which the next one replaces */
};

/* Record the start of a reload, its success, or its failure with the error text. */
void mk_scoreboard_reload_begin(struct mk_reload_stats *h);
void mk_scoreboard_reload_succeeded(struct mk_reload_stats *h);
void mk_scoreboard_reload_failed(struct mk_reload_stats *h, mk_str error);
/* Publishes the result of the order `id`. */
void mk_scoreboard_publish_result(struct mk_reload_stats *h, uint64_t id, bool ok, mk_str text);
/* Finds the result of the order. False: there is none yet, or none any more. */
bool mk_scoreboard_find_result(const struct mk_reload_stats *h, uint64_t id, bool *ok, struct mk_buf *text);

/* A slot. The master writes it, except for the counters, which the worker of the slot writes. */
struct mk_scoreboard_slot {
    int64_t pid;      /* 0: free; thread ID if workers are threads */
    uint64_t started; /* seconds since 1970; 0: neither this nor any later slot was ever used */
    bool draining;    /* the master has asked the worker to shut down */
    struct mk_counters counters;
};

/* The description of a worker that has received no request yet. */
#define MK_SCOREBOARD_FRESH "before its first request"

struct mk_scoreboard {
    struct mk_scoreboard_slot *at;
    size_t n;
    int64_t master_pid;
    int64_t started_at;                   /* when the master started: seconds since 1970 */
    struct mk_reload_stats *reload_stats; /* NULL: no master */
};

mk_err mk_scoreboard_init(struct mk_scoreboard *p, size_t n) MK_MUST_USE;
void mk_scoreboard_fini(struct mk_scoreboard *p);

/* Describes what the slot's worker does: its last request, and the last states of the connection. */
void mk_scoreboard_describe_slot(const struct mk_scoreboard_slot *slot, struct mk_buf *out);

/* Assigns the slot to another worker, and adds the counters of the previous worker to `past`. */
void mk_scoreboard_reassign_slot(struct mk_scoreboard *p, struct mk_scoreboard_slot *slot, uint64_t now);

/* The orders of administrators that wait for the same reload. */
enum { MK_RELOAD_ORDERS_MAX = 8 };

struct mk_reload_orders {
    uint64_t ids[MK_RELOAD_ORDERS_MAX];
    unsigned n;
};

/* Adds an order; 0 is none. False: too many orders wait. */
bool mk_scoreboard_add_order(struct mk_reload_orders *o, uint64_t id);
/* Publishes the result of all orders, and removes them. */
void mk_scoreboard_finish_orders(struct mk_reload_orders *o, struct mk_reload_stats *stats, bool ok,
                                 mk_str text);

#endif
