/* SPDX-License-Identifier: Apache-2.0 */
/* Waits: callbacks of the server that wake the handler. */
#include <errno.h>

#include "service/task.h"

/* ---- Time ---- */

struct nap {
    struct duda *d;
    bool over;
};

static void on_nap_over(void *ctx)
{
    struct nap *n = ctx;
    n->over = true;
    duda_wake(n->d);
}

int duda_sleep(struct duda *d, uint32_t ms)
{
    struct nap nap = {.d = d};
    int e = d->ended;
    if (e)
        return duda_suspend(d);
    struct mk_alarm *alarm = mk_alarm_new(duda_worker(d), on_nap_over, &nap);
    if (!alarm)
        return -ENOMEM;
    mk_alarm_set(alarm, ms);
    while (!nap.over && !e)
        e = duda_suspend(d);
    mk_alarm_free(alarm);
    return e;
}

/* ---- Descriptors ---- */

struct look {
    struct duda *d;
    unsigned which;
    bool late;
};

static void on_ready(void *ctx, unsigned which)
{
    struct look *l = ctx;
    l->which |= which;
    duda_wake(l->d);
}

static void on_late(void *ctx)
{
    struct look *l = ctx;
    l->late = true;
    duda_wake(l->d);
}

static int wait_for_look(struct look *l, struct mk_watcher *watcher)
{
    int e = 0;
    while (!l->which && !l->late && !e)
        e = duda_suspend(l->d);
    mk_watcher_free(watcher);
    return l->which ? (int)l->which : e ? e : -ETIMEDOUT;
}

int duda_ready(struct duda *d, int fd, unsigned events, uint32_t ms)
{
    struct look look = {.d = d};
    if (d->ended)
        return duda_suspend(d);
    struct mk_alarm *alarm = ms ? mk_alarm_new(duda_worker(d), on_late, &look) : NULL;
    if (ms && !alarm)
        return -ENOMEM;
    if (alarm)
        mk_alarm_set(alarm, ms);
    errno = 0;
    struct mk_watcher *watcher = mk_watcher_new(duda_worker(d), fd, events, on_ready, &look);
    int e = watcher ? wait_for_look(&look, watcher) : errno ? -errno : -ENOMEM;
    mk_alarm_free(alarm);
    return e;
}

/* ---- Threads ---- */

/* On the heap: the thread may still work when the handler is gone. */
struct aside {
    struct duda *d; /* NULL: it does not wait any more */
    void (*work)(void *job);
    void (*drop)(void *job);
    void *job;
    bool over;
};

static void run_aside(void *ctx)
{
    struct aside *a = ctx;
    a->work(a->job);
}

static void on_aside_done(void *ctx)
{
    struct aside *a = ctx;
    a->over = true;
    if (a->d) {
        duda_wake(a->d);
        return;
    }
    a->drop(a->job);
    mk_mem_free(a);
}

static int start_aside(struct duda *d, struct mk_threads *threads, struct aside *a)
{
    return threads ? mk_threads_run(threads, run_aside, on_aside_done, a)
                   : mk_worker_run_aside(duda_worker(d), run_aside, on_aside_done, a);
}

int duda_aside_given(struct duda *d, struct mk_threads *threads, void (*work)(void *job), void *job,
                     void (*drop)(void *job))
{
    struct aside *a = d->ended ? NULL : mk_mem_alloc(sizeof *a);
    if (!a) {
        drop(job);
        return d->ended ? duda_suspend(d) : -ENOMEM;
    }
    *a = (struct aside){.d = d, .work = work, .drop = drop, .job = job};
    int e = start_aside(d, threads, a);
    if (e) {
        mk_mem_free(a);
        drop(job);
        return e;
    }
    while (!a->over && !e)
        e = duda_suspend(d);
    if (!a->over) {
        a->d = NULL;
        return e;
    }
    mk_mem_free(a);
    return 0;
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
