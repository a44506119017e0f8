/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker_async.h"

#include "event/deferred.h"
#include "event/watcher.h"

enum {
    ASIDE_MAX = 1024,                    /* waiting or running jobs */
    TIMER_MS_MAX = 20 * 24 * 3600 * 1000 /* the timer wheel spans 24 days */
};

void mk_timer_set(struct mk_timer *t, struct mk_worker *w, uint32_t ms)
{
    mk_loop_set_timer(&w->loop, t, ms < TIMER_MS_MAX ? ms : TIMER_MS_MAX);
}

struct mk_watcher *mk_watcher_new(struct mk_worker *w, int fd, unsigned events,
                                  void (*on_ready)(void *ctx, unsigned which), void *ctx)
{
    return mk_watcher_new_on(&w->loop, fd, events, on_ready, ctx);
}

struct mk_deferred *mk_deferred_new(struct mk_worker *w, void (*on_end)(void *ctx), void *ctx)
{
    return mk_deferred_new_on(&w->loop, on_end, ctx);
}

/* ---- Work in other threads ---- */

int mk_worker_offload(struct mk_worker *w, void (*work)(void *ctx), void (*done)(void *ctx), void *ctx)
{
    return mk_thread_pool_submit(&w->thread_pool, work, done, ctx);
}

struct mk_thread_pool *mk_thread_pool_new(struct mk_worker *w, unsigned n, unsigned waiting_max)
{
    return mk_thread_pool_new_on(&w->loop, n, waiting_max);
}

/* ---- Calls from other threads ---- */

int mk_worker_post(struct mk_worker *w, void (*fn)(void *ctx), void *ctx)
{
    return mk_post_queue_push(&w->inbox, fn, ctx);
}

static void on_wakeup(struct mk_loop *loop)
{
    struct mk_worker *w = MK_CONTAINER(loop, struct mk_worker, loop);
    mk_post_queue_run(&w->inbox);
    if (w->on_wakeup)
        w->on_wakeup(w);
}

/* ---- Lifetime ---- */

mk_err mk_worker_async_init(struct mk_worker *w)
{
    mk_post_queue_init(&w->inbox, &w->loop);
    w->loop.on_wakeup = on_wakeup;
    return mk_thread_pool_init(&w->thread_pool, &w->loop, MK_OFFLOAD_THREADS, ASIDE_MAX - MK_OFFLOAD_THREADS);
}

void mk_worker_async_fini(struct mk_worker *w)
{
    w->ending = true;
    mk_thread_pool_fini(&w->thread_pool); /* first, because its completion callbacks may post */
    mk_post_queue_close(&w->inbox);
    mk_loop_run_tasks(&w->loop);
}
