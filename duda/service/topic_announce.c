/* SPDX-License-Identifier: Apache-2.0 */
#include "service/topic_announce.h"

#include <errno.h>
#include <monkey/mem.h>

/* Changes are announced with this interval; all topics are announced again after REFRESH intervals, because
 * other machines forget them after a while. */
enum { INTERVAL_MS = 500, REFRESH = 20 };

struct duda_announced_topic {
    struct duda_announced_topic *next;
    int64_t n; /* subscribers of this worker */
    bool has_changed;
    size_t len;
    char name[];
};

static mk_str announced_name(const struct duda_announced_topic *t)
{
    return mk_str_of(t->name, t->len);
}

static struct duda_announced_topic *get_or_create_announced(struct duda_worker_ctx *worker_ctx, mk_str topic)
{
    struct duda_announced_topic *t = worker_ctx->announced;
    while (t && !mk_str_eq(announced_name(t), topic))
        t = t->next;
    if (t)
        return t;
    t = mk_mem_zalloc(1, sizeof *t + topic.len);
    if (!t)
        return NULL;
    memcpy(t->name, topic.p, topic.len);
    t->len = topic.len;
    t->next = worker_ctx->announced;
    worker_ctx->announced = t;
    return t;
}

/* Only the task removes topics, so the list stays valid during its waits. */
static void remove_finished(struct duda_worker_ctx *worker_ctx)
{
    for (struct duda_announced_topic **at = &worker_ctx->announced; *at;) {
        struct duda_announced_topic *t = *at;
        if (t->n || t->has_changed) {
            at = &t->next;
        } else {
            *at = t->next;
            mk_mem_free(t);
        }
    }
}

/* If the relay fails, the topic is announced again after the next interval. */
static void announce_topic(struct duda_ctx *d, struct duda_announced_topic *t)
{
    const struct duda_topic_relay *relay = d->worker_ctx->relay;
    size_t mark = duda_arena_mark(d);
    if (!relay)
        return;
    t->has_changed = false;
    uint64_t n = duda_subscriber_counts_sum(&d->worker_ctx->subscriber_counts, announced_name(t));
    if (relay->announce_subscribers(d, relay->ctx, announced_name(t), n))
        t->has_changed = true;
    duda_arena_rewind(d, mark);
}

static int announce_topics(struct duda_ctx *d)
{
    struct duda_worker_ctx *worker_ctx = d->worker_ctx;
    int e = 0;
    for (unsigned n = 1; !e && worker_ctx->announced; n++) {
        e = duda_sleep(d, INTERVAL_MS);
        for (struct duda_announced_topic *t = worker_ctx->announced; t && !e; t = t->next) {
            if (t->has_changed || n % REFRESH == 0)
                announce_topic(d, t);
            e = duda_cancelled(d) ? -ECANCELED : 0;
        }
        if (!e)
            remove_finished(worker_ctx);
    }
    return e == -ECANCELED ? 0 : e;
}

static void spawn_announcer(struct duda_worker_ctx *worker_ctx);

static void on_announcer_end(void *ctx, int result)
{
    struct duda_worker_ctx *worker_ctx = ctx;
    (void)result;
    worker_ctx->announcer = NULL;
    if (worker_ctx->announced && worker_ctx->relay && !worker_ctx->is_draining)
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
    struct duda_announced_topic *t = get_or_create_announced(worker_ctx, topic);
    if (!t)
        return;
    t->n += change;
    t->has_changed = true;
    if (!worker_ctx->announcer && !worker_ctx->is_draining)
        spawn_announcer(worker_ctx);
}

void duda_topic_announce_stop(struct duda_worker_ctx *worker_ctx)
{
    if (worker_ctx->announcer)
        duda_task_cancel(worker_ctx->announcer);
}

void duda_topic_announce_free(struct duda_worker_ctx *worker_ctx)
{
    while (worker_ctx->announced) {
        struct duda_announced_topic *t = worker_ctx->announced;
        worker_ctx->announced = t->next;
        mk_mem_free(t);
    }
}
