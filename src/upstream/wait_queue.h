/* SPDX-License-Identifier: Apache-2.0 */
/* Queue of requests that wait for a connection, in this worker and in others: all workers share a server's
 * connection limit. The request that has waited longest for a server goes first. A retry waits only for
 * servers that it has not tried, and does not block requests for the others. */
#ifndef MK_UPSTREAM_WAIT_QUEUE_H
#define MK_UPSTREAM_WAIT_QUEUE_H

#include "upstream/pool_type.h"

static inline struct mk_backend_set *mk_wait_queue_set(const struct mk_backend *o)
{
    return o->set;
}

/* Has the request tried no server yet? */
bool mk_wait_queue_may_use_any_server(const struct mk_upstream_conn *l);

/* ---- This worker ---- */

/* The first request of the queue; NULL: the queue is empty. */
struct mk_upstream_conn *mk_wait_queue_first(const struct mk_backend_set *g);
/* The first request that may use the server and is not held back by its client's share. */
struct mk_upstream_conn *mk_wait_queue_find_for_backend(const struct mk_backend *o);
static inline struct mk_upstream_conn *mk_wait_queue_first_for_backend(const struct mk_backend *o)
{
    return MK_LIKELY(mk_list_empty(&mk_wait_queue_set(o)->waiting)) ? NULL
                                                                    : mk_wait_queue_find_for_backend(o);
}
/* Do waiting requests precede a new one, whichever server it gets? */
bool mk_wait_queue_has_eligible(const struct mk_backend_set *g);
static inline bool mk_wait_queue_has_waiting(const struct mk_backend_set *g)
{
    return g->n_waiting && mk_wait_queue_has_eligible(g);
}
/* May another request of this client wait? */
bool mk_wait_queue_has_room_for(const struct mk_backend_set *g, const struct mk_upstream_conn *l);
/* Call it after each change of the queue: publishes its waiting requests to other workers. */
void mk_wait_queue_publish(struct mk_backend_set *g);

/* ---- The other workers ---- */

/* Is it this request's turn for the server? False: a request of another worker has waited longer, or, if this
 * request is not queued, another request of this worker waits. */
bool mk_wait_queue_is_first_for_slot(const struct mk_backend *o, const struct mk_conn_limit_rule *rule,
                                     const struct mk_upstream_conn *l);
static inline bool mk_wait_queue_is_first(const struct mk_backend *o, const struct mk_conn_limit_rule *rule,
                                          const struct mk_upstream_conn *l)
{
    return !rule->max || mk_wait_queue_is_first_for_slot(o, rule, l);
}
/* Has another worker's request waited longer than all of ours for the server? */
bool mk_wait_queue_has_older_elsewhere(const struct mk_backend *o);
/* Call it when a slot is available: wakes the worker whose request has waited longest. */
void mk_wait_queue_wake_older(const struct mk_backend *o);
/* Like mk_wait_queue_wake_older(), but for all servers of the set with a slot that no request of ours uses.
 * `has_changed`: one of our requests has left the queue. */
void mk_wait_queue_wake_for_free_slots(const struct mk_backend_set *g, bool has_changed);
/* Call it when a client's share has free capacity again: wakes workers if a slot, or an idle connection of
 * another worker, is available for a waiting request. */
void mk_wait_queue_wake_if_available(const struct mk_backend *o);
/* Call it when our requests wait: wakes workers with idle connections, so that these workers close them. */
void mk_wait_queue_request_idle_conns(const struct mk_backend_set *g);
/* Wakes the workers with requests that wait for any server of the set. */
void mk_wait_queue_wake_all(const struct mk_backend_set *g);
/* Was this worker woken for one of the set's servers? */
bool mk_wait_queue_is_woken(const struct mk_backend_set *g, const uint64_t woken[MK_CONN_LIMIT_WORDS]);
/* The time at which to check the queue again without an event: for the first timeout, a stuck worker that
 * blocks the queue, or a server that becomes usable again. UINT64_MAX: the queue is empty. */
uint64_t mk_wait_queue_next_check_ms(const struct mk_backend_set *g, uint64_t now_ms);

#endif
