/* SPDX-License-Identifier: Apache-2.0 */
/* Connection pool of one worker: acquire, release, keep idle connections, queue requests. */
#ifndef MK_UPSTREAM_POOL_H
#define MK_UPSTREAM_POOL_H

#include "upstream/pool_type.h"

int mk_pool_start(struct mk_pool **out, struct mk_worker *w, const struct mk_upstreams *all);
void mk_pool_stop(struct mk_pool *p);

/* Acquires an idle or new connection to one of the servers that `c` may use; `c` has no socket. Returns 0;
 * -EAGAIN if the request must wait; or another error. */
int mk_pool_acquire(struct mk_backend_set *g, struct mk_upstream_conn *c);
/* Opens a new connection to the address in its options. Returns 0 or an error. */
int mk_pool_connect_to_addr(struct mk_backend_set *g, struct mk_upstream_conn *c);
/* Closes the socket after a failure to connect. */
void mk_pool_close_conn(struct mk_upstream_conn *c);
/* Releases the connection: keeps it idle if `clean`, or hands its socket to a waiting request. */
void mk_pool_release(struct mk_upstream_conn *c, bool clean);
/* Releases the connection of a cancelled request that the server is still working on: see
 * cancelled_conn.h. */
void mk_pool_release_cancelled(struct mk_upstream_conn *c, uint32_t ms, bool streams);
/* Queues the request. Returns -EAGAIN, or the result of mk_pool_acquire(); -EBUSY: the queue is full. */
int mk_pool_enqueue(struct mk_backend_set *g, struct mk_upstream_conn *c);
void mk_pool_dequeue(struct mk_upstream_conn *c);

/* Block size for request memory. */
enum { MK_POOL_BLOCK = 1024 };
struct mk_freelist *mk_pool_request_freelist(const struct mk_upstream *u, struct mk_worker *w);

/* Counts a new request, for which the connection was acquired. */
void mk_pool_count_request(const struct mk_upstream_conn *c);
/* May a request be retried within RetryBudget? If so, counts it. */
bool mk_pool_may_retry(struct mk_upstream *u, struct mk_worker *w);

/* Reports a failure of the server. `message`: static text; NULL: the text of `error`. */
void mk_pool_report_failure(struct mk_backend *o, int error, const char *message);
/* Call it when a server has failed: updates the published state of the server until it is up again. */
void mk_pool_schedule_sweep(struct mk_pool *p);

#endif
