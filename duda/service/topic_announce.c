/* SPDX-License-Identifier: Apache-2.0 */
#include "service/topic_announce.h"

#include <duda/memory.h>
#include <errno.h>

#include "service/announced_topics.h"

/* Changes are announced with this interval; all topics are announced again after REFRESH intervals, because
 * other machines forget them after a while. */
enum { INTERVAL_MS = 500, REFRESH = 20, BATCH = 256 };

static void remove_finished(struct duda_announced_topics *all)
{
    for (size_t i = 0; i < DUDA_ANNOUNCED_BUCKETS; i++)
        for (struct duda_announced_topic **at = &all->buckets[i]; *at;)
            if ((*at)->n || (*at)->has_changed)
                at = &(*at)->next;
            else
                duda_announced_remove(all, at);
}

static void mark_all_changed(struct duda_announced_topics *all)
{
    for (size_t i = 0; i < DUDA_ANNOUNCED_BUCKETS; i++)
        for (struct duda_announced_topic *t = all->buckets[i]; t; t = t->next)
            t->has_changed = true;
}

/* Collects changed topics, and marks them as unchanged. Copies their names, because topics may be removed
 * during a wait. */
static size_t collect_batch(struct duda_ctx *d, struct duda_announced_topics *all,
                            struct duda_topic_count *batch)
{
    size_t n = 0;
    for (size_t i = 0; i < DUDA_ANNOUNCED_BUCKETS; i++)
        for (struct duda_announced_topic *t = all->buckets[i]; t; t = t->next) {
            if (!t->has_changed || n == BATCH)
                continue;
            mk_str name = duda_strdup(d, duda_announced_name(t));
            if (!name.p)
                return n;
            uint64_t sum = duda_subscriber_counts_sum(&d->worker_ctx->subscriber_counts, name);
            batch[n++] = (struct duda_topic_count){name, sum};
            t->has_changed = false;
        }
    return n;
}

/* After a failure, topics with subscribers are announced again after the next interval. Other machines forget
 * the others by themselves, so an outage of the relay does not collect them. */
static void retry_batch(struct duda_announced_topics *all, const struct duda_topic_count *batch, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct duda_announced_topic *t = *duda_announced_find(all, batch[i].topic);
        if (t)
            t->has_changed = t->n != 0;
    }
}

/* Announces topics that have changed. Returns whether there may be more. */
static bool announce_batch(struct duda_ctx *d)
{
    const struct duda_topic_relay *relay = d->worker_ctx->relay;
    struct duda_announced_topics *all = d->worker_ctx->announced;
    size_t mark = duda_arena_mark(d);
    struct duda_topic_count *batch = relay ? duda_alloc(d, BATCH * sizeof *batch) : NULL;
    size_t n = batch ? collect_batch(d, all, batch) : 0;
    int e = n ? relay->announce_subscribers(d, relay->ctx, batch, n) : 0;
    if (e)
        retry_batch(all, batch, n);
    duda_arena_rewind(d, mark);
    return !e && n == BATCH;
}

static int announce_topics(struct duda_ctx *d)
{
    struct duda_announced_topics *all = d->worker_ctx->announced;
    int e = 0;
    for (unsigned n = 1; !e && all->n; n++) {
        e = duda_sleep(d, INTERVAL_MS);
        if (!e && n % REFRESH == 0)
            mark_all_changed(all);
        while (!e && announce_batch(d))
            e = duda_cancelled(d);
        e = e ? e : duda_cancelled(d);
        if (!e)
            remove_finished(all);
    }
    return e == -ECANCELED ? 0 : e;
}

static void spawn_announcer(struct duda_worker_ctx *worker_ctx);

static void on_announcer_end(void *ctx, int result)
{
    struct duda_worker_ctx *worker_ctx = ctx;
    (void)result;
    worker_ctx->announcer = NULL;
    if (worker_ctx->announced->n && worker_ctx->relay && !worker_ctx->is_draining)
        spawn_announcer(worker_ctx);
}

static void spawn_announcer(struct duda_worker_ctx *worker_ctx)
{
    const struct duda_task task = {
        .name = "topics", .fn = announce_topics, .ctx = worker_ctx, .on_end = on_announcer_end};
    if (duda_task_spawn(worker_ctx->worker, &task, &worker_ctx->announcer))
        worker_ctx->announcer = NULL; /* the next change tries again */
}

void duda_topic_announce_change(struct duda_worker_ctx *worker_ctx, mk_str topic, int change)
{
    if (!worker_ctx->relay || !worker_ctx->relay->announce_subscribers)
        return;
    struct duda_announced_topics *all = duda_announced_topics_get_or_create(&worker_ctx->announced);
    struct duda_announced_topic **at = !all         ? NULL
                                       : change > 0 ? duda_announced_get_or_create(all, topic)
                                                    : duda_announced_find(all, topic);
    if (!at || !*at) /* out of memory now, or when the subscriber was added */
        return;
    (*at)->n += change;
    (*at)->has_changed = true;
    if (!(*at)->n && all->n > DUDA_SUBSCRIBER_TOPICS) { /* other machines forget it by themselves */
        duda_announced_remove(all, at);
        return;
    }
    if (!worker_ctx->announcer && !worker_ctx->is_draining)
        spawn_announcer(worker_ctx);
}

void duda_topic_announce_stop(struct duda_worker_ctx *worker_ctx)
{
    if (worker_ctx->announcer)
        duda_task_cancel(worker_ctx->announcer);
}
