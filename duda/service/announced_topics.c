/* SPDX-License-Identifier: Apache-2.0 */
#include "service/announced_topics.h"

#include <monkey/mem.h>

struct duda_announced_topic **duda_announced_find(struct duda_announced_topics *all, mk_str topic)
{
    struct duda_announced_topic **at = &all->buckets[mk_hash(&all->key, topic) % DUDA_ANNOUNCED_BUCKETS];
    while (*at && !mk_str_eq(duda_announced_name(*at), topic))
        at = &(*at)->next;
    return at;
}

struct duda_announced_topics *duda_announced_topics_get_or_create(struct duda_announced_topics **all)
{
    if (*all)
        return *all;
    *all = mk_mem_zalloc(1, sizeof **all);
    if (*all)
        mk_random(&(*all)->key, sizeof(*all)->key);
    return *all;
}

struct duda_announced_topic **duda_announced_get_or_create(struct duda_announced_topics *all, mk_str topic)
{
    struct duda_announced_topic **at = duda_announced_find(all, topic);
    if (*at)
        return at;
    struct duda_announced_topic *t = mk_mem_zalloc(1, sizeof *t + topic.len);
    if (!t)
        return NULL;
    memcpy(t->name, topic.p, topic.len);
    t->len = topic.len;
    *at = t;
    all->n++;
    return at;
}

void duda_announced_remove(struct duda_announced_topics *all, struct duda_announced_topic **at)
{
    struct duda_announced_topic *t = *at;
    *at = t->next;
    all->n--;
    mk_mem_free(t);
}

void duda_announced_topics_free(struct duda_announced_topics *all)
{
    for (size_t i = 0; all && i < DUDA_ANNOUNCED_BUCKETS; i++)
        while (all->buckets[i])
            duda_announced_remove(all, &all->buckets[i]);
    mk_mem_free(all);
}
