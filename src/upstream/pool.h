/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of one worker: lent, kept while they are idle, and waited for. */
#ifndef MK_UPSTREAM_POOL_H
#define MK_UPSTREAM_POOL_H

#include "upstream/pool_type.h"

int mk_pool_start(struct mk_pool **out, struct mk_worker *w, const struct mk_upstreams *all);
void mk_pool_stop(struct mk_pool *p);

/* Finds an idle or a new connection to one of the servers that `c`, which has no socket, may use: 0; -EAGAIN: it has to wait; or
 * why there is none. */
int mk_pool_acquire(struct mk_backend_set *g, struct mk_upstream_conn *c);
/* A new connection to the address that its options name: 0, or why there is none. */
int mk_pool_connect_to_addr(struct mk_backend_set *g, struct mk_upstream_conn *c);
/* Connecting failed: closes the socket. */
void mk_pool_close_conn(struct mk_upstream_conn *c);
/* The request has released it: keeps it if `clean`, or hands its socket to a request that waits. */
void mk_pool_release(struct mk_upstream_conn *c, bool clean);
/* Its request was cancelled while the server works on it: see cancelled_conn.h. */
void mk_pool_release_cancelled(struct mk_upstream_conn *c, uint32_t ms, bool streams);
/* It has no socket. */
void mk_pool_free_conn(struct mk_upstream_conn *c);
/* Queues it: -EAGAIN, or as mk_pool_acquire(), or -EBUSY if too many wait. */
int mk_pool_enqueue(struct mk_backend_set *g, struct mk_upstream_conn *c);
void mk_pool_dequeue(struct mk_upstream_conn *c);
/* Calls on_ready of the request at the end of the turn. */
void mk_pool_notify(struct mk_pool *p, struct mk_upstream_conn *c);
/* For mk_pool.end. */
void mk_pool_run_notifications(void *pool);
/* Is it a kept connection? Then on_ready is called at the end of the turn: what is sent then leaves with what the other requests
 * of the turn send, and the servers work on all of it at once. A new connection has woken its server already. */
bool mk_pool_notify_if_reused(struct mk_upstream_conn *c);

/* For memory of requests. */
enum { MK_POOL_BLOCK = 1024 };
struct mk_freelist *mk_pool_request_memory(const struct mk_upstream *u, struct mk_worker *w);

/* A request of this worker to the upstream begins. */
void mk_pool_count_request(struct mk_upstream *u, struct mk_worker *w);
/* May one be tried again, within RetryBudget? Then it counts as such. */
bool mk_pool_may_retry(struct mk_upstream *u, struct mk_worker *w);

/* The server failed, by `error`; `why` in words, static; NULL: what `error` means. */
void mk_pool_report_failure(struct mk_backend *o, int error, const char *why);
/* A server has failed: its state is shown until it is up again. */
void mk_pool_schedule_sweep(struct mk_pool *p);

#endif
