/* SPDX-License-Identifier: Apache-2.0 */
/* The rooms of a worker: names with members of any kind. It must not know what members do with what they
 * hear. */
#ifndef DUDA_SERVICE_TOPIC_TABLE_H
#define DUDA_SERVICE_TOPIC_TABLE_H

#include <duda/topic.h>

struct duda_topic_table;

/* What was said. The frame is made when the first member wants it. */
struct duda_topic_delivery {
    mk_str room, text;
    enum mk_websocket_kind kind;
    struct mk_websocket_message *framed;
};

/* Hears one room, for `owner`. */
struct duda_subscriber {
    struct duda_subscriber *next, **at; /* in the room */
    struct duda_subscriber *sibling;    /* of the same owner; the owner's */
    struct duda_topic *room;
    void *owner;
    void (*on_message)(void *owner,
                       struct duda_topic_delivery *delivery); /* may take out members, its own too */
};

struct duda_topic_table *duda_topic_table_new(void);
/* All members have left. */
void duda_topic_table_free(struct duda_topic_table *r);

/* 0 or -ENOMEM. The member is the caller's. */
int duda_topic_table_add(struct duda_topic_table *r, mk_str name, struct duda_subscriber *m);
void duda_topic_table_remove(struct duda_topic_table *r, struct duda_subscriber *m);
mk_str duda_topic_table_name(const struct duda_subscriber *m);

/* Tells all members here. */
void duda_topic_table_publish(struct duda_topic_table *r, mk_str name, enum mk_websocket_kind kind,
                              mk_str text);
size_t duda_topic_table_count(const struct duda_topic_table *r, mk_str name);

#endif
