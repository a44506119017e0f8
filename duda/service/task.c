/* SPDX-License-Identifier: Apache-2.0 */
#include "service/task.h"

#include <errno.h>
#include <stdio.h>

struct mk_request *duda_request(const struct duda *d)
{
    return d->request;
}

struct mk_response *duda_response(const struct duda *d)
{
    return d->response;
}

struct mk_worker *duda_worker(const struct duda *d)
{
    return d->home->worker;
}

void duda_task_log(const struct duda *d, enum mk_log_level level, const char *fmt, ...)
{
    char room[2560];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(room, sizeof room, fmt, args);
    va_end(args);
    if (n < 0)
        return;
    if (d->request)
        mk_request_log(d->request, level, "%s", room);
    else
        mk_worker_log(d->home->worker, level, "%s", room);
}

int duda_task_suspend(struct duda *d, enum duda_waits_for what)
{
    if (!d->fiber) /* in a deferred function of one that was terminated */
        return d->ended;
    if (!d->ended && !(what == DUDA_FOR_WAKE && d->woken)) {
        d->waits_for = what;
        duda_fiber_yield(d->fiber);
    } else if (d->ended && ++d->refused >= DUDA_REFUSALS_MAX) {
        duda_fiber_yield(d->fiber);
    }
    d->woken = false;
    return d->ended;
}

int duda_task_lose_client(struct duda *d)
{
    if (!d->ended)
        d->ended = -ECANCELED;
    return d->ended;
}

void duda_wait_begin(struct duda *d, struct duda_wait *w, void (*cancel)(struct duda_wait *w))
{
    *w = (struct duda_wait){.outer = d->waits, .d = d, .cancel = cancel};
    d->waits = w;
}

void duda_wait_end(struct duda_wait *w)
{
    if (!w->d)
        return;
    w->d->waits = w->outer;
    w->d = NULL;
}

int duda_suspend(struct duda *d)
{
    return duda_task_suspend(d, DUDA_FOR_WAKE);
}

void duda_wake(struct duda *d)
{
    d->woken = true;
    if (d->runs || !d->fiber)
        return;
    if (!d->tunnels)
        mk_request_resume(d->request);
    /* A response under way is resumed when the client has room: what has ended does not wait for that. */
    bool is_ours = d->tunnels || (d->streams && d->ended);
    if (is_ours && !d->is_queued) {
        d->is_queued = true;
        d->next_woken = d->home->woken;
        d->home->woken = d;
        mk_turn_end_set(d->home->turn);
    }
}

int duda_ended(const struct duda *d)
{
    return d->ended;
}

static void on_deadline(void *ctx)
{
    struct duda *d = ctx;
    if (!d->ended)
        d->ended = -ETIMEDOUT;
    duda_wake(d);
}

int duda_deadline(struct duda *d, uint32_t ms)
{
    int e = d->request ? mk_request_limit_wait(d->request, 0) : 0; /* ours counts */
    if (e)
        return e;
    if (ms && !d->deadline)
        d->deadline = mk_alarm_new(duda_worker(d), on_deadline, d);
    if (ms && !d->deadline)
        return -ENOMEM;
    if (ms)
        mk_alarm_set(d->deadline, ms);
    else if (d->deadline)
        mk_alarm_stop(d->deadline);
    return 0;
}
