/* SPDX-License-Identifier: Apache-2.0 */
/* What one worker has of all upstreams: open and idle connections, and exchanges that wait for one. */
#ifndef MK_UPSTREAM_POOL_H
#define MK_UPSTREAM_POOL_H

#include "upstream/channel.h"

struct mk_pool;

/* Of one server. */
struct mk_outlet {
    struct mk_pool *pool;
    const struct mk_server *server;
    struct mk_names names;
    struct mk_list idle; /* the one used last first */
    unsigned n_open, n_idle;
    int64_t turn;                   /* its credit in `Balance turns` */
    struct mk_tls_session *session; /* the last one, to be resumed */
};

/* Of one upstream. */
struct mk_group {
    struct mk_pool *pool;
    const struct mk_upstream *upstream;
    struct mk_outlet *outlets;
    struct mk_list waiting; /* links, in the order they came */
    unsigned n_waiting;
    unsigned first; /* of `Balance least`: where the search begins */
};

struct mk_pool {
    struct mk_worker *worker;
    const struct mk_upstreams *upstreams;
    struct mk_board board;
    unsigned row;
    struct mk_group *groups;   /* by mk_upstream.index */
    struct mk_outlet *outlets; /* of all groups */
    struct mk_alarm *alarm;    /* sweeps, while there is anything to sweep */
    bool is_sweeping;
    struct mk_turn_end *end; /* reports to links whose state changed */
    struct mk_list changed;
};

int mk_pool_start(struct mk_pool **out, struct mk_worker *w, const struct mk_upstreams *all);
void mk_pool_stop(struct mk_pool *p);
/* A message of another worker: exchanges wait there, or may go on here. */
void mk_pool_on_message(struct mk_pool *p, mk_str message);

/* Takes an idle or a new connection to one of the servers that the link may use, as far as there is one:
 * 0: link->channel; -EAGAIN: it has to wait; or why there is none. */
int mk_pool_take(struct mk_group *g, struct mk_link *l);
/* The channel is free: keeps it if `clean`, or hands it to an exchange that waits. */
void mk_pool_give(struct mk_channel *c, bool clean);
/* Do exchanges wait, here or in another worker, that go before one that begins now? */
bool mk_pool_has_queue(const struct mk_group *g);
/* Queues the link: -EAGAIN, or -EBUSY if too many wait. */
int mk_pool_wait(struct mk_group *g, struct mk_link *l);
void mk_pool_leave(struct mk_link *l);
/* Calls on_ready of the link at the end of the turn. */
void mk_pool_notify(struct mk_pool *p, struct mk_link *l);

/* A server has failed: its state is shown until it is up again. */
void mk_pool_watch(struct mk_pool *p);
/* Open and idle connections have become more, or fewer. */
void mk_pool_count(struct mk_outlet *o, int open, int idle);

#endif
