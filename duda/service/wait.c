/* SPDX-License-Identifier: Apache-2.0 */
/* Waits: callbacks of the server that wake the handler. */
#include <errno.h>

#include "service/task.h"

/* ---- Time ---- */

struct nap {
    struct duda_wait wait; /* the first */
    struct mk_timer timer;
};

static void on_nap_over(struct mk_timer *t)
{
    struct nap *n = MK_CONTAINER(t, struct nap, timer);
    duda_wait_wake(&n->wait);
}

static void end_nap(struct duda_wait *w)
{
    mk_timer_stop(&((struct nap *)w)->timer);
}

int duda_sleep(struct duda *d, uint32_t ms)
{
    struct nap nap;
    mk_timer_init(&nap.timer, on_nap_over);
    int e = duda_wait_begin(d, &nap.wait, end_nap);
    if (e)
        return e;
    mk_timer_set(&nap.timer, duda_worker(d), ms);
    e = duda_wait_suspend(&nap.wait);
    duda_wait_end(&nap.wait);
    return e;
}

/* ---- Descriptors ---- */

struct look {
    struct duda_wait wait; /* the first */
    struct mk_timer timer;
    struct mk_watcher *watcher;
    unsigned which; /* 0: the time is over */
};

static void on_ready(void *ctx, unsigned which)
{
    struct look *l = ctx;
    l->which |= which;
    duda_wait_wake(&l->wait);
}

static void on_late(struct mk_timer *t)
{
    struct look *l = MK_CONTAINER(t, struct look, timer);
    duda_wait_wake(&l->wait);
}

static void end_look(struct duda_wait *w)
{
    struct look *l = (struct look *)w;
    mk_watcher_free(l->watcher);
    mk_timer_stop(&l->timer);
}

static int start_look(struct look *l, int fd, unsigned events, uint32_t ms)
{
    struct mk_worker *w = duda_worker(l->wait.d);
    mk_timer_init(&l->timer, on_late);
    if (ms)
        mk_timer_set(&l->timer, w, ms);
    errno = 0;
    l->watcher = mk_watcher_new(w, fd, events, on_ready, l);
    return l->watcher ? 0 : errno ? -errno : -ENOMEM;
}

int duda_ready(struct duda *d, int fd, unsigned events, uint32_t ms)
{
    struct look look = {.which = 0};
    int e = duda_wait_begin(d, &look.wait, end_look);
    if (e)
        return e;
    e = start_look(&look, fd, events, ms);
    e = e ? e : duda_wait_suspend(&look.wait);
    duda_wait_end(&look.wait);
    return e ? e : look.which ? (int)look.which : -ETIMEDOUT;
}

/* ---- Threads ---- */

/* On the heap: the thread may still work when the handler is gone. */
struct aside {
    struct duda_wait wait; /* the first */
    void (*work)(void *job);
    void (*drop)(void *job);
    void *job;
    bool is_over, is_abandoned;
};

static void run_aside(void *ctx)
{
    struct aside *a = ctx;
    a->work(a->job);
}

static void on_aside_done(void *ctx)
{
    struct aside *a = ctx;
    a->is_over = true;
    if (!a->is_abandoned) {
        duda_wait_wake(&a->wait);
        return;
    }
    a->drop(a->job);
    mk_mem_free(a);
}

/* The thread that still works on it is the last one to see it. */
static void end_aside(struct duda_wait *w)
{
    struct aside *a = (struct aside *)w;
    a->is_abandoned = true;
    if (a->is_over)
        mk_mem_free(a);
}

static int start_aside(struct duda *d, struct mk_threads *threads, struct aside *a)
{
    int e = duda_wait_begin(d, &a->wait, end_aside);
    if (e)
        return e;
    return threads ? mk_threads_run(threads, run_aside, on_aside_done, a)
                   : mk_worker_run_aside(duda_worker(d), run_aside, on_aside_done, a);
}

int duda_aside_given(struct duda *d, struct mk_threads *threads, void (*work)(void *job), void *job,
                     void (*drop)(void *job))
{
    /* The job is the caller's no more: it goes before a handler that has ended may be terminated. */
    struct aside *a = d->ended ? NULL : mk_mem_zalloc(1, sizeof *a);
    if (!a) {
        drop(job);
        return d->ended ? duda_suspend(d) : -ENOMEM;
    }
    *a = (struct aside){.work = work, .drop = drop, .job = job};
    int e = start_aside(d, threads, a);
    if (e) {
        a->is_over = true;
        duda_wait_end(&a->wait);
        drop(job);
        return e;
    }
    e = duda_wait_suspend(&a->wait);
    if (!e)
        duda_wait_end(&a->wait);
    return e;
}

int duda_aside(struct duda *d, struct mk_threads *threads, void (*work)(void *job), void *job, size_t size)
{
    void *copy = mk_mem_alloc(size ? size : 1);
    if (!copy)
        return -ENOMEM;
    if (size)
        memcpy(copy, job, size);
    int e = duda_aside_given(d, threads, work, copy, mk_mem_free);
    if (!e && size)
        memcpy(job, copy, size);
    if (!e)
        mk_mem_free(copy);
    return e;
}
