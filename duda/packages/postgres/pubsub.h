/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of a database: one connection of a worker, and those that listen. */
#ifndef DUDA_POSTGRES_PUBSUB_H
#define DUDA_POSTGRES_PUBSUB_H

#include <duda/postgres.h>

#include "conn.h"
#include "message_queue/message_queue.h"

struct duda_postgres_sub {
    struct duda_postgres_sub *next, **link;
    struct postgres_pubsub *pubsub;     /* NULL: it has left */
    struct package_message_queue inbox; /* of a handler; else on_message() is called */
    void (*on_message)(void *ctx, mk_str text);
    void *ctx;
    struct duda_postgres_sub *gone; /* the next one that has left */
    uint64_t listen_no;             /* of the LISTEN that counts for it; 0: none is under way, or done */
    bool is_active, was_active;
    char channel[DUDA_POSTGRES_CHANNEL_MAX + 1];
};

struct postgres_pubsub {
    struct postgres_conn conn; /* the first: a connection is its hub */
    struct mk_timer timer;
    struct duda_postgres_sub *subs;
    uint64_t n_listens, heard_ms;
    bool delivers;                  /* functions are being called */
    struct duda_postgres_sub *gone; /* that have left meanwhile */
};

int postgres_pubsub_init(struct postgres_pubsub *h, struct mk_worker *w,
                         const struct postgres_settings *settings, struct postgres_resolver *hosts);
void postgres_pubsub_fini(struct postgres_pubsub *h);
void postgres_pubsub_subscribe(struct postgres_pubsub *h, struct duda_postgres_sub *sub);
void postgres_pubsub_unsubscribe(struct duda_postgres_sub *sub);
/* Frees it. It has left. */
void postgres_pubsub_free_sub(struct duda_postgres_sub *sub);

#endif
