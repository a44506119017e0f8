/* SPDX-License-Identifier: Apache-2.0 */
/* The topics of a worker: names with subscribers of any kind. Knows nothing about what subscribers do with
 * messages. */
#ifndef DUDA_SERVICE_TOPIC_TABLE_H
#define DUDA_SERVICE_TOPIC_TABLE_H

#include <duda/topic.h>

#include "service/topic_id.h"

struct duda_topic_table;

/* What follows a position in the kept messages: a framed message or gap that was read from the log. */
struct duda_topic_frame {
    struct duda_topic_frame *next;
    struct duda_topic_id after, id; /* the position before and after it */
    struct mk_websocket_message *framed;
};

/* A published message. Its frames are built when the first subscriber needs them. */
struct duda_topic_delivery {
    mk_str topic, text;
    enum mk_websocket_kind kind;
    struct mk_websocket_message *framed, *framed_with_id;
    struct duda_topic_frame *frames; /* of messages that some subscribers missed before this one */
    unsigned n_frames;
    bool is_kept;
    struct duda_topic_id prev, id; /* of a kept message: its ID, and that of the message before it */
    const void *except;            /* owner of the subscriber that does not get the message; NULL: none */
};

/* The position of a subscriber in the kept messages of a topic. */
struct duda_topic_position {
    struct duda_topic_id cursor; /* the last kept message that the subscriber got */
    bool is_from_start;          /* wants all kept messages and has read none, so a gap does not count yet */
    uint32_t keep_s;             /* maximum age of kept messages; 0: any */
};

/* A subscription of `owner` to one topic. */
struct duda_subscriber {
    struct duda_subscriber *next, **at; /* in the topic */
    struct duda_subscriber *sibling;    /* next subscription of the same owner; managed by the owner */
    struct duda_topic_entry *topic;
    void *owner;
    bool is_counted; /* in the counts that all workers share */
    void (*on_message)(struct duda_subscriber *m,
                       struct duda_topic_delivery *delivery); /* may remove subscribers, including itself */
    /* For subscribers that must not miss kept messages; managed by the owner. */
    void (*on_missed)(
        struct duda_subscriber *m); /* it may have missed messages; must not remove subscribers */
    bool is_reliable;
    bool is_behind;  /* kept messages after the position have to be read from the log */
    unsigned n_news; /* number of messages that were not enqueued because of is_behind */
    struct duda_topic_position position;
    /* Of a WebSocket: */
    bool was_behind;              /* the log had later messages at the last check */
    struct duda_topic_id checked; /* the position at that check */
    /* In the list of the table; at_lost is NULL if the subscriber is not lost. */
    struct duda_subscriber *next_lost, **at_lost;
};

struct duda_topic_table *duda_topic_table_new(void);
/* Frees the table. Remove all subscribers first. */
void duda_topic_table_free(struct duda_topic_table *r);

/* Adds a subscriber, which the caller owns. Returns 0 or -ENOMEM. */
int duda_topic_table_add(struct duda_topic_table *r, mk_str name, struct duda_subscriber *m);
void duda_topic_table_remove(struct duda_topic_table *r, struct duda_subscriber *m);
mk_str duda_topic_table_name(const struct duda_subscriber *m);

/* Delivers to the subscribers in this worker. */
void duda_topic_table_publish(struct duda_topic_table *r, struct duda_topic_delivery *delivery);
/* Adds a frame, which the delivery then owns. Returns NULL, and frees the frame, if out of memory. Earlier
 * frames may become invalid. */
const struct duda_topic_frame *duda_topic_delivery_add_frame(struct duda_topic_delivery *delivery,
                                                             const struct duda_topic_id *after,
                                                             const struct duda_topic_id *id,
                                                             struct mk_websocket_message *framed);
/* Calls fn for each subscriber, topic by topic, until it returns false. `fn` must not add or remove
 * subscribers. */
void duda_topic_table_for_each(struct duda_topic_table *r, bool (*fn)(struct duda_subscriber *m, void *ctx),
                               void *ctx);
/* Adds the subscriber to the list of subscribers that have lost messages. Their clients must reconnect. */
void duda_topic_table_mark_lost(struct duda_topic_table *r, struct duda_subscriber *m);
/* Returns a lost subscriber; NULL: none. Its removal from its topic removes it from the list. */
struct duda_subscriber *duda_topic_table_first_lost(const struct duda_topic_table *r);

#endif
