/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for a connection, in this worker and in others, which share the budget of a server: the
 * one that has waited longest for it goes first. One that has tried a server in vain waits for another, and
 * holds up none that may use the first. */
#ifndef MK_UPSTREAM_WAIT_QUEUE_H
#define MK_UPSTREAM_WAIT_QUEUE_H

#include "upstream/pool_type.h"

static inline struct mk_backend_set *mk_wait_queue_set(const struct mk_backend *o)
{
    return &o->pool->sets[o->server->upstream->index];
}

/* It has tried none in vain. */
bool mk_wait_queue_may_use_any_server(const struct mk_upstream_conn *l);

/* ---- Of this worker ---- */

/* NULL: none waits. */
struct mk_upstream_conn *mk_wait_queue_first(const struct mk_backend_set *g);
/* The first that may use the server, and that no share of its client holds back. */
struct mk_upstream_conn *mk_wait_queue_first_for_backend(const struct mk_backend *o);
/* Do requests wait that go before one that begins now, whichever server it gets? */
bool mk_wait_queue_has_waiting(const struct mk_backend_set *g);
/* May another request of its client wait? */
bool mk_wait_queue_has_room_for(const struct mk_backend_set *g, const struct mk_upstream_conn *l);
/* Tells the other workers since when they wait; after each change. */
void mk_wait_queue_publish(struct mk_backend_set *g);

/* ---- Of the others ---- */

/* May it have a connection to the server now, or has a request of another worker waited for it
 * longer, or one of ours, if it does not wait yet? */
bool mk_wait_queue_is_first(const struct mk_backend *o, const struct mk_upstream_conn *l);
/* Has one waited longer than all of ours that may use the server? */
bool mk_wait_queue_has_older_elsewhere(const struct mk_backend *o);
/* There is room for it: wakes its worker. */
void mk_wait_queue_wake_older(const struct mk_backend *o);
/* The same for all servers of the set that have a slot which none of ours uses. `has_changed`: one of ours waits no
 * more. */
void mk_wait_queue_wake_for_free_slots(const struct mk_backend_set *g, bool has_changed);
/* The share of a client has room: is there a slot, or an idle connection of others, for one that waits? */
void mk_wait_queue_wake_if_available(const struct mk_backend *o);
/* Ours wait: wakes others that have idle connections, to give them up. */
void mk_wait_queue_request_idle_conns(const struct mk_backend_set *g);
/* Wakes the workers whose requests wait for any of its servers. */
void mk_wait_queue_wake_all(const struct mk_backend_set *g);
/* Was this worker woken for one of its servers? */
bool mk_wait_queue_is_woken(const struct mk_backend_set *g, const uint64_t woken[MK_CONN_LIMIT_WORDS]);
/* When those that wait are looked at again, though no event comes: it is too late for the first one, a worker is
 * blocked that holds it up, or a server may be used again. UINT64_MAX: none waits. */
uint64_t mk_wait_queue_next_deadline_ms(const struct mk_backend_set *g, uint64_t now_ms);

#endif
