/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker_wait.h"

#include "net/turnend.h"
#include "net/watcher.h"

enum {
    ASIDE_MAX = 1024,                    /* waiting or running jobs */
    TIMER_MS_MAX = 20 * 24 * 3600 * 1000 /* a wheel reaches 24 days */
};

void mk_timer_set(struct mk_timer *t, struct mk_worker *w, uint32_t ms)
{
    mk_loop_set_timer(&w->loop, t, ms < TIMER_MS_MAX ? ms : TIMER_MS_MAX);
}

struct mk_watcher *mk_watcher_new(struct mk_worker *w, int fd, unsigned events,
                                  void (*on_ready)(void *ctx, unsigned which), void *ctx)
{
    return mk_watcher_new_in(&w->loop, fd, events, on_ready, ctx);
}

struct mk_turn_end *mk_turn_end_new(struct mk_worker *w, void (*on_end)(void *ctx), void *ctx)
{
    return mk_turn_end_new_in(&w->loop, on_end, ctx);
}

/* ---- Work in other threads ---- */

int mk_worker_run_aside(struct mk_worker *w, void (*work)(void *ctx), void (*done)(void *ctx), void *ctx)
{
    return mk_threads_run(&w->aside, work, done, ctx);
}

struct mk_threads *mk_threads_new(struct mk_worker *w, unsigned n, unsigned waiting_max)
{
    return mk_threads_new_in(&w->loop, n, waiting_max);
}

/* ---- Calls from other threads ---- */

int mk_worker_post(struct mk_worker *w, void (*fn)(void *ctx), void *ctx)
{
    return mk_inbox_post(&w->inbox, fn, ctx);
}

static void on_bell(struct mk_loop *loop)
{
    struct mk_worker *w = MK_CONTAINER(loop, struct mk_worker, loop);
    mk_inbox_run(&w->inbox);
    if (w->on_bell)
        w->on_bell(w);
}

/* ---- Life ---- */

mk_err mk_worker_wait_init(struct mk_worker *w)
{
    mk_inbox_init(&w->inbox, &w->loop);
    w->loop.on_bell = on_bell;
    return mk_threads_init(&w->aside, &w->loop, MK_HELPER_THREADS, ASIDE_MAX - MK_HELPER_THREADS);
}

void mk_worker_wait_end(struct mk_worker *w)
{
    w->ending = true;
    mk_threads_fini(&w->aside); /* first: its completion callbacks may post */
    mk_inbox_close(&w->inbox);
    mk_loop_run_tasks(&w->loop);
}
