/* SPDX-License-Identifier: Apache-2.0 */
/* Waits: callbacks of the server that wake the handler. */
#include <errno.h>

#include "service/task.h"

/* ---- Time ---- */

struct nap {
    struct duda_wait wait;
    struct duda *d;
    struct mk_alarm *alarm;
    bool over;
};

static void on_nap_over(void *ctx)
{
    struct nap *n = ctx;
    n->over = true;
    duda_wake(n->d);
}

static void cancel_nap(struct duda_wait *w)
{
    mk_alarm_free(((struct nap *)w)->alarm);
}

int duda_sleep(struct duda *d, uint32_t ms)
{
    struct nap nap = {.d = d};
    int e = d->ended;
    if (e)
        return duda_suspend(d);
    nap.alarm = mk_alarm_new(duda_worker(d), on_nap_over, &nap);
    if (!nap.alarm)
        return -ENOMEM;
    duda_wait_begin(d, &nap.wait, cancel_nap);
    mk_alarm_set(nap.alarm, ms);
    while (!nap.over && !e)
        e = duda_suspend(d);
    duda_wait_end(&nap.wait);
    mk_alarm_free(nap.alarm);
    return e;
}

/* ---- Descriptors ---- */

struct look {
    struct duda_wait wait;
    struct duda *d;
    struct mk_alarm *alarm;
    struct mk_watcher *watcher;
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

static void free_look(struct look *l)
{
    mk_watcher_free(l->watcher);
    mk_alarm_free(l->alarm);
}

static void cancel_look(struct duda_wait *w)
{
    free_look((struct look *)w);
}

static int wait_for_look(struct look *l)
{
    int e = 0;
    duda_wait_begin(l->d, &l->wait, cancel_look);
    while (!l->which && !l->late && !e)
        e = duda_suspend(l->d);
    duda_wait_end(&l->wait);
    return l->which ? (int)l->which : e ? e : -ETIMEDOUT;
}

int duda_ready(struct duda *d, int fd, unsigned events, uint32_t ms)
{
    struct look look = {.d = d};
    if (d->ended)
        return duda_suspend(d);
    look.alarm = ms ? mk_alarm_new(duda_worker(d), on_late, &look) : NULL;
    if (ms && !look.alarm)
        return -ENOMEM;
    if (look.alarm)
        mk_alarm_set(look.alarm, ms);
    errno = 0;
    look.watcher = mk_watcher_new(duda_worker(d), fd, events, on_ready, &look);
    int e = look.watcher ? wait_for_look(&look) : errno ? -errno : -ENOMEM;
    free_look(&look);
    return e;
}

/* ---- Threads ---- */

/* On the heap: the thread may still work when the handler is gone. */
struct aside {
    struct duda_wait wait;
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

static void cancel_aside(struct duda_wait *w)
{
    ((struct aside *)w)->d = NULL;
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
    duda_wait_begin(d, &a->wait, cancel_aside);
    while (!a->over && !e)
        e = duda_suspend(d);
    duda_wait_end(&a->wait);
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
