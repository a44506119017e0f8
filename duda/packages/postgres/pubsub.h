/* SPDX-License-Identifier: Apache-2.0 */
/* LISTEN and NOTIFY of a database: one connection per worker, and its subscriptions. */
#ifndef DUDA_POSTGRES_PUBSUB_H
#define DUDA_POSTGRES_PUBSUB_H

#include <duda/postgres.h>

#include "common/package_message_queue.h"
#include "conn.h"

struct duda_postgres_sub {
    struct duda_postgres_sub *next, **prev_next;
    struct postgres_pubsub *pubsub;     /* NULL: unsubscribed */
    struct package_message_queue inbox; /* for a handler that receives; unused if on_message is set */
    void (*on_message)(void *ctx, mk_str text);
    void *ctx;
    struct duda_postgres_sub *unsubscribed; /* next in the list of unsubscribed ones */
    uint64_t listen_no;                     /* number of the LISTEN for this channel; 0: not sent yet */
    bool is_active, was_active;
    char channel[DUDA_POSTGRES_CHANNEL_MAX + 1];
};

struct postgres_pubsub {
    struct postgres_conn conn; /* must be first: a connection is cast to its pubsub */
    struct mk_timer timer;
    struct duda_postgres_sub *subs;
    uint64_t n_listens, last_received_ms;
    bool delivers;                          /* callbacks are running now */
    struct duda_postgres_sub *unsubscribed; /* freed when the callbacks have returned */
};

int postgres_pubsub_init(struct postgres_pubsub *h, struct mk_worker *w,
                         const struct postgres_settings *settings, struct postgres_resolver *hosts);
void postgres_pubsub_fini(struct postgres_pubsub *h);
void postgres_pubsub_subscribe(struct postgres_pubsub *h, struct duda_postgres_sub *sub);
void postgres_pubsub_unsubscribe(struct duda_postgres_sub *sub);
/* Frees a subscription that is not in the list of the pubsub. */
void postgres_pubsub_free_sub(struct duda_postgres_sub *sub);

#endif
