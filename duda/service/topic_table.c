/* SPDX-License-Identifier: Apache-2.0 */
#include "service/topic_table.h"

#include <errno.h>
#include <monkey/mem.h>
#include <monkey/text.h>

enum {
    BUCKETS_MIN = 16,
    FRAMES_MAX = 64, /* limits the memory of a delivery */
};

struct duda_topic_entry {
    struct duda_topic_entry *next;
    uint64_t hash;
    struct duda_subscriber *members;
    size_t n;
    bool is_delivering; /* a delivery is in progress: kept even if all subscribers leave */
    size_t len;
    char name[];
};

/* The next subscriber to deliver to. Deliveries nest: a subscriber may publish to another topic. */
struct delivery_cursor {
    struct duda_subscriber **next;
    struct delivery_cursor *outer;
};

struct duda_topic_table {
    struct mk_hash_key key; /* keyed hash, because clients may choose names */
    struct duda_topic_entry **buckets;
    size_t n, n_buckets; /* a power of two */
    struct delivery_cursor *deliveries;
    struct duda_subscriber *lost;
};

struct duda_topic_table *duda_topic_table_new(void)
{
    struct duda_topic_table *r = mk_mem_zalloc(1, sizeof *r);
    if (r)
        r->buckets = mk_mem_zalloc(BUCKETS_MIN, sizeof *r->buckets);
    if (r && !r->buckets) {
        mk_mem_free(r);
        return NULL;
    }
    if (r) {
        r->n_buckets = BUCKETS_MIN;
        mk_random(&r->key, sizeof r->key);
    }
    return r;
}

void duda_topic_table_free(struct duda_topic_table *r)
{
    if (r)
        mk_mem_free(r->buckets);
    mk_mem_free(r);
}

static struct duda_topic_entry **find_topic(const struct duda_topic_table *r, mk_str name, uint64_t hash)
{
    struct duda_topic_entry **at = &r->buckets[hash & (r->n_buckets - 1)];
    while (*at && !((*at)->hash == hash && mk_str_eq(mk_str_of((*at)->name, (*at)->len), name)))
        at = &(*at)->next;
    return at;
}

/* If out of memory, the table keeps its size, and lookups become slower. */
static void grow_buckets(struct duda_topic_table *r)
{
    size_t n = 2 * r->n_buckets;
    struct duda_topic_entry **buckets = mk_mem_zalloc(n, sizeof *buckets);
    if (!buckets)
        return;
    for (size_t i = 0; i < r->n_buckets; i++)
        while (r->buckets[i]) {
            struct duda_topic_entry *topic = r->buckets[i];
            r->buckets[i] = topic->next;
            topic->next = buckets[topic->hash & (n - 1)];
            buckets[topic->hash & (n - 1)] = topic;
        }
    mk_mem_free(r->buckets);
    r->buckets = buckets;
    r->n_buckets = n;
}

static struct duda_topic_entry *get_or_create_topic(struct duda_topic_table *r, mk_str name)
{
    uint64_t hash = mk_hash(&r->key, name);
    struct duda_topic_entry **at = find_topic(r, name, hash);
    if (*at)
        return *at;
    struct duda_topic_entry *topic = mk_mem_zalloc(1, sizeof *topic + name.len);
    if (!topic)
        return NULL;
    memcpy(topic->name, name.p, name.len);
    topic->len = name.len;
    topic->hash = hash;
    *at = topic;
    if (++r->n > 2 * r->n_buckets)
        grow_buckets(r);
    return topic;
}

static void free_topic_if_empty(struct duda_topic_table *r, struct duda_topic_entry *topic)
{
    if (topic->members || topic->is_delivering)
        return;
    *find_topic(r, mk_str_of(topic->name, topic->len), topic->hash) = topic->next;
    r->n--;
    mk_mem_free(topic);
}

int duda_topic_table_add(struct duda_topic_table *r, mk_str name, struct duda_subscriber *m)
{
    struct duda_topic_entry *topic = get_or_create_topic(r, name);
    if (!topic)
        return -ENOMEM;
    m->topic = topic;
    m->next = topic->members;
    m->at = &topic->members;
    if (m->next)
        m->next->at = &m->next;
    topic->members = m;
    topic->n++;
    return 0;
}

void duda_topic_table_remove(struct duda_topic_table *r, struct duda_subscriber *m)
{
    struct duda_topic_entry *topic = m->topic;
    if (!topic)
        return;
    for (struct delivery_cursor *c = r->deliveries; c; c = c->outer)
        if (c->next == &m->next)
            c->next = m->at;
    *m->at = m->next;
    if (m->next)
        m->next->at = m->at;
    m->topic = NULL;
    if (m->at_lost) {
        *m->at_lost = m->next_lost;
        if (m->next_lost)
            m->next_lost->at_lost = m->at_lost;
        m->at_lost = NULL;
    }
    topic->n--;
    free_topic_if_empty(r, topic);
}

mk_str duda_topic_table_name(const struct duda_subscriber *m)
{
    return m->topic ? mk_str_of(m->topic->name, m->topic->len) : MK_STR_NULL;
}

static void deliver_to_subscribers(struct duda_topic_table *r, struct duda_topic_entry *topic,
                                   struct duda_topic_delivery *delivery)
{
    struct delivery_cursor c = {&topic->members, r->deliveries};
    r->deliveries = &c;
    while (*c.next) {
        struct duda_subscriber *m = *c.next;
        c.next = &m->next; /* duda_topic_table_remove() adjusts c.next if that subscriber leaves */
        if (m->owner != delivery->except)
            m->on_message(m, delivery);
    }
    r->deliveries = c.outer;
}

static void free_frames(struct duda_topic_delivery *delivery)
{
    while (delivery->frames) {
        struct duda_topic_frame *f = delivery->frames;
        delivery->frames = f->next;
        mk_websocket_message_free(f->framed);
        mk_mem_free(f);
    }
    delivery->n_frames = 0;
}

const struct duda_topic_frame *duda_topic_delivery_add_frame(struct duda_topic_delivery *delivery,
                                                             const struct duda_topic_id *after,
                                                             const struct duda_topic_id *id,
                                                             struct mk_websocket_message *framed)
{
    struct duda_topic_frame *f = mk_mem_alloc(sizeof *f);
    if (!f) {
        mk_websocket_message_free(framed);
        return NULL;
    }
    if (delivery->n_frames == FRAMES_MAX)
        free_frames(delivery);
    *f = (struct duda_topic_frame){delivery->frames, *after, *id, framed};
    delivery->frames = f;
    delivery->n_frames++;
    return f;
}

void duda_topic_table_publish(struct duda_topic_table *r, struct duda_topic_delivery *delivery)
{
    struct duda_topic_entry *topic = *find_topic(r, delivery->topic, mk_hash(&r->key, delivery->topic));
    if (!topic || topic->is_delivering)
        return;
    topic->is_delivering = true;
    deliver_to_subscribers(r, topic, delivery);
    topic->is_delivering = false;
    free_topic_if_empty(r, topic);
    mk_websocket_message_free(delivery->framed);
    mk_websocket_message_free(delivery->framed_with_id);
    free_frames(delivery);
}

void duda_topic_table_for_each(struct duda_topic_table *r, bool (*fn)(struct duda_subscriber *m, void *ctx),
                               void *ctx)
{
    for (size_t i = 0; i < r->n_buckets; i++)
        for (struct duda_topic_entry *topic = r->buckets[i]; topic; topic = topic->next)
            for (struct duda_subscriber *m = topic->members; m; m = m->next)
                if (!fn(m, ctx))
                    return;
}

void duda_topic_table_mark_lost(struct duda_topic_table *r, struct duda_subscriber *m)
{
    if (m->at_lost)
        return;
    m->next_lost = r->lost;
    m->at_lost = &r->lost;
    if (m->next_lost)
        m->next_lost->at_lost = &m->next_lost;
    r->lost = m;
}

struct duda_subscriber *duda_topic_table_first_lost(const struct duda_topic_table *r)
{
    return r->lost;
}
