/* SPDX-License-Identifier: Apache-2.0 */
/* What one worker has of all upstreams: open and idle connections, and requests that wait for one. */
#ifndef MK_UPSTREAM_POOL_TYPE_H
#define MK_UPSTREAM_POOL_TYPE_H

#include "upstream/conn.h"
#include "upstream/freelist.h"
#include "upstream/retry_budget.h"

struct mk_pool;

/* Of one server. */
struct mk_backend {
    struct mk_pool *pool;
    const struct mk_upstream_server *server;
    struct mk_resolver names;
    struct mk_list idle;      /* the one used last first */
    struct mk_list lent;      /* in use, or being made */
    struct mk_list abandoned; /* cancelled_conn.h */
    unsigned n_open, n_idle;
    uint32_t *shown_idle;            /* n_idle, for workers whose requests wait */
    uint64_t *cells;                 /* its statistics of this worker; NULL: none */
    int64_t turn;                    /* its credit in `Balance round_robin` */
    struct mk_health_checker *check; /* of its health, in the first worker; NULL: none */
    struct mk_tls_session *session;  /* the last one, to be resumed */
};

/* Of one upstream. */
struct mk_backend_set {
    struct mk_pool *pool;
    const struct mk_upstream *upstream;
    struct mk_backend *backends;
    struct mk_list waiting; /* connections, in the order they came */
    unsigned n_waiting;
    struct mk_retry_budget retry;
    unsigned first; /* of `Balance least_conn`: where the search begins */
};

/* The last clients, whose hashes need not be calculated again: mk_client_share_key(). */
enum { MK_CLIENT_SHARE_CACHE = 64 };
struct mk_client_share_cache {
    uint64_t ip[2];  /* as in struct mk_addr */
    uint64_t client; /* 0: unused */
};

struct mk_pool {
    struct mk_worker *worker;
    const struct mk_upstreams *upstreams;
    struct mk_upstream_stats stats;
    struct mk_conn_limit limit;
    unsigned row;                /* of this worker, in both */
    struct mk_backend_set *sets; /* by mk_upstream.index */
    struct mk_backend *backends; /* of all sets */
    struct mk_watcher *wakes;    /* by other workers; NULL: there are none */
    struct mk_timer timer;       /* sweeps, while there is anything to sweep */
    uint64_t sweeps_at_ms;       /* 0: it does not */
    struct mk_deferred *end;     /* reports to requests whose connection changed */
    struct mk_list changed;
    struct mk_thread_pool *threads; /* that look up names; NULL until there is one */
    struct mk_freelist conns;
    struct mk_freelist blocks; /* of requests */
    struct mk_client_share_cache clients[MK_CLIENT_SHARE_CACHE];
};

#endif
