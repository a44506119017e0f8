/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges that wait for a connection, in this worker and in others, which share the budget of a server: the
 * one that has waited longest for it goes first. One that has tried a server in vain waits for another, and
 * holds up none that may use the first. */
#ifndef MK_UPSTREAM_QUEUE_H
#define MK_UPSTREAM_QUEUE_H

#include "upstream/pool_type.h"

static inline struct mk_group *mk_queue_group(const struct mk_outlet *o)
{
    return &o->pool->groups[o->server->upstream->index];
}

/* It has tried none in vain. */
bool mk_queue_may_use_all(const struct mk_link *l);

/* ---- Of this worker ---- */

/* NULL: none waits. */
struct mk_link *mk_queue_first(const struct mk_group *g);
/* The first link that may use the server, and that no share of its client holds back. */
struct mk_link *mk_queue_first_for(const struct mk_outlet *o);
/* Do exchanges wait that go before one that begins now, whichever server it gets? */
bool mk_queue_has_waiting(const struct mk_group *g);
/* May another request of its client wait? */
bool mk_queue_has_room_for(const struct mk_group *g, const struct mk_link *l);
/* Tells the other workers since when they wait; after each change. */
void mk_queue_show(struct mk_group *g);

/* ---- Of the others ---- */

/* May the link have a connection to the server now, or has an exchange of another worker waited for it
 * longer, or one of ours, if the link does not wait yet? */
bool mk_queue_is_first(const struct mk_outlet *o, const struct mk_link *l);
/* Has one waited longer than all of ours that may use the server? */
bool mk_queue_has_older(const struct mk_outlet *o);
/* There is room for it. */
void mk_queue_wake_older(const struct mk_outlet *o);
/* Ours wait: let others give up idle connections, if they have any. */
void mk_queue_ask_for_idle(const struct mk_group *g);

#endif
