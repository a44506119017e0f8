/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker_wait.h"

#include "base/mem.h"
#include "net/alarm.h"
#include "net/watcher.h"

enum {
    ASIDE_MAX = 1024,          /* that wait or run */
    ASIDE_STACK = 1024 * 1024, /* libraries that look up names or hash passwords want more than we do */
};

struct mk_alarm *mk_alarm_new(struct mk_worker *w, void (*on_due)(void *ctx), void *ctx)
{
    return mk_alarm_new_in(&w->loop, on_due, ctx);
}

struct mk_watcher *mk_watcher_new(struct mk_worker *w, int fd, unsigned events,
                                  void (*on_ready)(void *ctx, unsigned which), void *ctx)
{
    return mk_watcher_new_in(&w->loop, fd, events, on_ready, ctx);
}

/* ---- Work in other threads ---- */

struct aside {
    struct mk_job job;
    struct mk_worker *worker;
    void (*work)(void *ctx);
    void (*done)(void *ctx);
    void *ctx;
};

static void run(struct mk_job *job)
{
    struct aside *a = MK_CONTAINER(job, struct aside, job);
    a->work(a->ctx);
}

static void finish(struct mk_job *job)
{
    struct aside *a = MK_CONTAINER(job, struct aside, job), ended = *a;
    mk_mem_free(a);
    ended.worker->n_aside--;
    ended.done(ended.ctx);
}

int mk_worker_run_aside(struct mk_worker *w, void (*work)(void *ctx), void (*done)(void *ctx), void *ctx)
{
    if (w->ending || w->n_aside >= ASIDE_MAX)
        return -EAGAIN;
    struct aside *a = mk_mem_alloc(sizeof *a);
    if (!a)
        return -EAGAIN;
    *a = (struct aside){
        .job = {.run = run, .done = finish}, .worker = w, .work = work, .done = done, .ctx = ctx};
    if (!mk_helper_submit(&w->aside, &a->job)) {
        mk_mem_free(a);
        return -EAGAIN;
    }
    w->n_aside++;
    return 0;
}

/* ---- Calls from other threads ---- */

int mk_worker_post(struct mk_worker *w, void (*fn)(void *ctx), void *ctx)
{
    return mk_inbox_post(&w->inbox, fn, ctx);
}

static void on_bell(struct mk_loop *loop)
{
    mk_inbox_run(&MK_CONTAINER(loop, struct mk_worker, loop)->inbox);
}

/* ---- Life ---- */

mk_err mk_worker_wait_init(struct mk_worker *w)
{
    mk_inbox_init(&w->inbox, &w->loop);
    w->loop.on_bell = on_bell;
    mk_err e = mk_helper_init(&w->aside, &w->loop);
    w->aside.stack = ASIDE_STACK;
    return e;
}

void mk_worker_wait_end(struct mk_worker *w)
{
    w->ending = true;
    mk_helper_fini(&w->aside); /* first: who is told that it is done may post */
    mk_inbox_close(&w->inbox);
    mk_loop_run_tasks(&w->loop);
}
