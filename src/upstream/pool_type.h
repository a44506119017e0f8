/* SPDX-License-Identifier: Apache-2.0 */
/* The state of all upstreams in one worker: open connections, idle connections and waiting requests. */
#ifndef MK_UPSTREAM_POOL_TYPE_H
#define MK_UPSTREAM_POOL_TYPE_H

#include "upstream/conn.h"
#include "upstream/freelist.h"
#include "upstream/retry_budget.h"

struct mk_pool;
struct mk_discovery;
struct mk_upstream_http2_module;

/* State of one server. */
struct mk_backend {
    struct mk_pool *pool;
    struct mk_backend_set *set;
    struct mk_backend *total; /* host of a dynamic upstream: counts the connections of all hosts; NULL: an
                               * ordinary server */
    const struct mk_upstream_server *server;
    struct mk_resolver names;
    struct mk_list idle;      /* idle connections, most recently used first (LIFO) */
    struct mk_list lent;      /* connections in use or connecting */
    struct mk_list cancelled; /* connections of cancelled requests; see cancelled_conn.h */
    struct mk_list http2_sessions;
    uint32_t http2_streams_max; /* streams that the server allows in a session; 0: not known yet */
    unsigned n_open, n_idle;
    const uint32_t *mode;            /* enum mk_server_mode, in shared memory */
    uint32_t *shown_idle;            /* publishes n_idle to workers with waiting requests */
    uint64_t *cells;                 /* this worker's statistics; NULL: none */
    int64_t credit;                  /* credit of the server in weighted round robin */
    struct mk_health_checker *check; /* health checker, in the first worker; NULL: none */
    struct mk_tls_session *session;  /* last TLS session, for resumption */
};

/* State of one upstream. */
struct mk_backend_set {
    struct mk_pool *pool;
    const struct mk_upstream *upstream;
    struct mk_backend *backends;
    struct mk_list waiting; /* waiting connections, in order of arrival (FIFO) */
    unsigned n_waiting;
    unsigned n_conns; /* existing struct mk_upstream_conn, including the idle ones */
    struct mk_retry_budget retry;
};

/* Cache of mk_client_share_key(): the hashes of recent clients. */
enum { MK_CLIENT_SHARE_CACHE = 64 };
struct mk_client_share_cache {
    uint64_t ip[2];  /* address of the client, as in struct mk_addr */
    uint64_t client; /* 0: unused */
};

struct mk_pool {
    struct mk_worker *worker;
    struct mk_upstreams *upstreams;
    struct mk_upstream_stats stats;
    struct mk_conn_limit limit;
    unsigned row;                /* index of this worker's row in the connection limit, and in the counts of
                                  * idle connections */
    struct mk_backend_set *sets; /* indexed by mk_upstream.index */
    struct mk_backend *backends; /* backends of all sets */
    struct mk_watcher *wakes;    /* wakeups from other workers; NULL: none */
    struct mk_timer timer;       /* periodic sweep, while needed */
    uint64_t sweeps_at_ms;       /* 0: not scheduled */
    struct mk_deferred *end;     /* notifies requests whose connection changed */
    struct mk_list changed;
    struct mk_list unflushed;                     /* HTTP/2 sessions with output */
    const struct mk_upstream_http2_module *http2; /* NULL: no upstream uses HTTP/2 */
    char *http2_scratch;                          /* memory of the input of HTTP/2; NULL until needed */
    unsigned n_http2_wide;                        /* streams of HTTP/2 with a wide receive window */
    struct mk_thread_pool *threads;               /* threads for name lookups; NULL until needed */
    struct mk_thread_pool *host_threads; /* the same for dynamic upstreams, whose names may resolve slowly */
    struct mk_server_name *names;        /* of servers that were added */
    bool saves_state;                    /* a thread writes a StateFile: servers cannot be changed */
    struct mk_discovery *discovery;      /* in the first worker, if an upstream has sources; otherwise NULL */
    struct mk_list hosts;                /* of dynamic upstreams: see dynamic_host.h */
    /* Returns the backend set of a host. Points to mk_dynamic_host_find(), which pool.c cannot call: it
     * depends on the pool itself. */
    struct mk_backend_set *(*find_host)(struct mk_pool *p, const struct mk_upstream *u, mk_str host,
                                        uint16_t port);
    struct mk_freelist conns;
    struct mk_freelist blocks; /* free list for request memory */
    struct mk_client_share_cache clients[MK_CLIENT_SHARE_CACHE];
};

#endif
