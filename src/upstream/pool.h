/* SPDX-License-Identifier: Apache-2.0 */
/* Connection pool of one worker: acquires and releases connections for requests (see monkey/upstream.h),
 * keeps idle connections, and queues requests. */
#ifndef MK_UPSTREAM_POOL_H
#define MK_UPSTREAM_POOL_H

#include "upstream/pool_type.h"

/* ---- pool_lifecycle.c ---- */

int mk_pool_start(struct mk_pool **out, struct mk_worker *w, struct mk_upstreams *all);
/* Call it when the worker begins to drain: ends discovery and health checks, which the worker that replaces it runs. */
void mk_pool_drain(struct mk_pool *p);
void mk_pool_stop(struct mk_pool *p);
/* Frees spare memory and, if `with_conns`, closes idle connections. */
void mk_pool_release_memory(struct mk_pool *p, bool with_conns);

/* ---- For requests ---- */

/* The pool of the worker for the upstream, as long as the worker runs. */
struct mk_pool *mk_pool_of_worker(const struct mk_worker *w, const struct mk_upstream *u);

/* Block size for request memory. */
enum { MK_POOL_BLOCK = 1072 };
struct mk_freelist *mk_pool_request_freelist(struct mk_pool *p);

/* Like mk_upstream_conn_acquire(), but on_down is called when the server goes down before it responds, for a
 * failover to another server. */
struct mk_upstream_conn *mk_pool_acquire_for_request(struct mk_pool *p, struct mk_upstream *u,
                                                     const struct mk_upstream_conn_options *options,
                                                     void (*on_event)(void *ctx, unsigned which),
                                                     void (*on_down)(void *ctx), void *ctx);
/* Is this a reused connection? Then on_event is called at the end of the loop iteration, so that the request
 * is sent together with the other requests of the iteration, and the servers work on all of them at once. A
 * new connection is not delayed, because connecting has already woken its server. */
bool mk_pool_notify_if_reused(struct mk_upstream_conn *c);
/* Counts a new request, for which the connection was acquired. */
void mk_pool_count_request(const struct mk_upstream_conn *c);
/* Counts the status of a response for OutlierErrors. */
void mk_pool_count_status(const struct mk_upstream_conn *c, unsigned status);
/* Does the administrator admit new requests to a server that is not in the bit mask `tried`? */
bool mk_pool_has_untried(const struct mk_upstream *u, uint64_t tried);
/* May a request be retried within RetryBudget? If so, counts the retry. */
bool mk_pool_may_retry(struct mk_pool *p, const struct mk_upstream *u);

/* ---- For the sweep and the lifecycle ---- */

/* Call it when a connection becomes idle, or when a server has failed: the sweep closes expired idle
 * connections, and updates the published state of the server until the server is up again. */
void mk_pool_schedule_sweep(struct mk_pool *p);
/* Schedules a sweep at a point in time; UINT64_MAX: no sweep. */
void mk_pool_schedule_sweep_at(struct mk_pool *p, uint64_t now, uint64_t at);
/* Callback of mk_pool.end: notifies the requests whose connection has changed. */
void mk_pool_run_notifications(void *pool);
/* Removes and returns the most recently used idle connection, which the server is least likely to close.
 * NULL: none. */
struct mk_upstream_conn *mk_pool_pop_idle(struct mk_backend *o);
void mk_pool_remove_idle(struct mk_upstream_conn *c);
/* Closes and frees a connection that no request uses and that is not idle. */
void mk_pool_close_conn(struct mk_upstream_conn *c);
/* Does the server still have the address of this connection? DNS may have changed. */
bool mk_pool_is_addr_current(struct mk_upstream_conn *c);
/* Ends the wait of a queued request with an error; 0: it has a connection. */
void mk_pool_end_wait(struct mk_upstream_conn *c, int error);
/* Serves the queue; slots that our requests do not use go to other workers. */
void mk_pool_serve_queue(struct mk_backend_set *g);
/* Call it when a connection was closed: waiting requests may use its slot. */
void mk_pool_serve_backend(struct mk_backend *o);
/* For each server, closes an idle connection if a waiting request of another worker needs its slot. */
void mk_pool_yield_idle(struct mk_backend_set *g);

#endif
