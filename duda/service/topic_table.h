/* SPDX-License-Identifier: Apache-2.0 */
/* The topics of a worker: names with subscribers of any kind. Knows nothing about what subscribers do with
 * messages. */
#ifndef DUDA_SERVICE_TOPIC_TABLE_H
#define DUDA_SERVICE_TOPIC_TABLE_H

#include <duda/topic.h>

struct duda_topic_table;

/* A published message. The frame is built when the first subscriber needs it. */
struct duda_topic_delivery {
    mk_str topic, text;
    const void *except; /* the subscriber with this owner does not get the message; may be NULL */
    enum mk_websocket_kind kind;
    struct mk_websocket_message *framed;
};

/* A subscription of `owner` to one topic. */
struct duda_subscriber {
    struct duda_subscriber *next, **at; /* in the topic */
    struct duda_subscriber *sibling;    /* next subscription of the same owner; managed by the owner */
    struct duda_topic *topic;
    void *owner;
    void (*on_message)(void *owner,
                       struct duda_topic_delivery *delivery); /* may remove subscribers, including itself */
};

struct duda_topic_table *duda_topic_table_new(void);
/* Frees the table. Remove all subscribers first. */
void duda_topic_table_free(struct duda_topic_table *r);

/* Adds a subscriber, which the caller owns. Returns 0 or -ENOMEM. */
int duda_topic_table_add(struct duda_topic_table *r, mk_str name, struct duda_subscriber *m);
void duda_topic_table_remove(struct duda_topic_table *r, struct duda_subscriber *m);
mk_str duda_topic_table_name(const struct duda_subscriber *m);

/* Delivers to all subscribers in this worker, except those with the owner `except`, which may be NULL. */
void duda_topic_table_publish(struct duda_topic_table *r, mk_str name, enum mk_websocket_kind kind,
                              mk_str text, const void *except);
size_t duda_topic_table_count_subscribers(const struct duda_topic_table *r, mk_str name);

#endif
