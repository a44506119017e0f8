/* SPDX-License-Identifier: Apache-2.0 */
/* The topics whose subscribers a worker announces to other machines. */
#ifndef DUDA_SERVICE_ANNOUNCED_TOPICS_H
#define DUDA_SERVICE_ANNOUNCED_TOPICS_H

#include <monkey/text.h>

enum { DUDA_ANNOUNCED_BUCKETS = 1024 };

struct duda_announced_topic {
    struct duda_announced_topic *next; /* in the bucket */
    int64_t n;                         /* subscribers of this worker */
    bool has_changed;
    size_t len;
    char name[];
};

/* Topics with subscribers, and topics that other machines should forget. */
struct duda_announced_topics {
    struct mk_hash_key key; /* keyed hash, because clients may choose names */
    size_t n;
    struct duda_announced_topic *buckets[DUDA_ANNOUNCED_BUCKETS];
};

static inline mk_str duda_announced_name(const struct duda_announced_topic *t)
{
    return mk_str_of(t->name, t->len);
}

/* Creates *all if it is NULL. Returns *all; NULL: out of memory. */
struct duda_announced_topics *duda_announced_topics_get_or_create(struct duda_announced_topics **all);
/* Frees all topics; `all` may be NULL. */
void duda_announced_topics_free(struct duda_announced_topics *all);

/* Returns the pointer to the topic in its bucket, which contains NULL if there is no such topic. */
struct duda_announced_topic **duda_announced_find(struct duda_announced_topics *all, mk_str topic);
/* Returns NULL if out of memory. */
struct duda_announced_topic **duda_announced_get_or_create(struct duda_announced_topics *all, mk_str topic);
void duda_announced_remove(struct duda_announced_topics *all, struct duda_announced_topic **at);

#endif
