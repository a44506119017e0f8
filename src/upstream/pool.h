/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of one worker: lent, kept while they are idle, and waited for. */
#ifndef MK_UPSTREAM_POOL_H
#define MK_UPSTREAM_POOL_H

#include "upstream/pool_type.h"

int mk_pool_start(struct mk_pool **out, struct mk_worker *w, const struct mk_upstreams *all);
void mk_pool_stop(struct mk_pool *p);
/* A message of another worker: exchanges wait there, or may go on here. */
void mk_pool_on_message(struct mk_pool *p, mk_str message);

/* Takes an idle or a new connection to one of the servers that the link may use, as far as there is one:
 * 0: link->channel; -EAGAIN: it has to wait; or why there is none. */
int mk_pool_take(struct mk_backend_set *g, struct mk_upstream_conn *l);
/* A new connection to the address that the link names: 0, or why there is none. */
int mk_pool_dial(struct mk_backend_set *g, struct mk_upstream_conn *l);
/* The channel is free: keeps it if `clean`, or hands it to an exchange that waits. */
void mk_pool_give(struct mk_channel *c, bool clean);
/* Its request was cancelled while the server works on it: see abandon.h. */
void mk_pool_abandon(struct mk_channel *c, uint32_t ms, bool streams);
/* Queues the link: -EAGAIN, or -EBUSY if too many wait. */
int mk_pool_wait(struct mk_backend_set *g, struct mk_upstream_conn *l);
void mk_pool_leave(struct mk_upstream_conn *l);
/* Calls on_ready of the link at the end of the turn. */
void mk_pool_notify(struct mk_pool *p, struct mk_upstream_conn *l);

/* For memory of exchanges with the upstream. */
enum { MK_POOL_BLOCK = 1024 };
struct mk_freelist *mk_pool_blocks(const struct mk_upstream *u, struct mk_worker *w);

/* A request of this worker to the upstream begins. */
void mk_pool_count_request(struct mk_upstream *u, struct mk_worker *w);
/* May one be tried again, within RetryBudget? Then it counts as such. */
bool mk_pool_may_retry(struct mk_upstream *u, struct mk_worker *w);

/* The server failed, by `error`; `why` in words, static; NULL: what `error` means. */
void mk_pool_blame(struct mk_backend *o, int error, const char *why);
/* A server has failed: its state is shown until it is up again. */
void mk_pool_watch(struct mk_pool *p);

#endif
