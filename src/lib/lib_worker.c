/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/lib_worker.h"

#include <unistd.h>

#include "base/stats.h"
#include "lib/housekeeping.h"
#include "lib/live_listeners.h"

enum { LISTEN_RETRY_MS = 100 };

enum { SLOW_LOOP_MS = 500 };

/* ---- Threads inside library calls ---- */

void mk_lib_worker_enter(struct mk_lib_worker *r)
{
    r->owner = pthread_self();
    atomic_store(&r->is_in, true);
}

void mk_lib_worker_leave(struct mk_lib_worker *r)
{
    atomic_store(&r->is_in, false);
}

bool mk_lib_worker_is_in_call(const struct mk_server *s)
{
    for (unsigned i = 0; i < s->n_workers; i++)
        if (atomic_load(&s->workers[i].is_in) && pthread_equal(s->workers[i].owner, pthread_self()))
            return true;
    return false;
}

/* ---- Stopping ---- */

/* An open socket keeps queuing connections even if no worker accepts from it any longer, so the last worker
 * that drains closes all sockets. */
static void close_listeners_if_last(struct mk_lib_worker *r)
{
    struct mk_server *s = r->server;
    if (r->has_drained)
        return;
    r->has_drained = true;
    mk_live_listeners_drain(r);
    pthread_mutex_lock(&s->lock);
    if (++s->n_draining == s->n_workers) {
        mk_live_listeners_close_all(s);
        mk_listeners_close_all(&s->listeners, true);
    }
    pthread_mutex_unlock(&s->lock);
}

/* Returns the remaining drain time as for mk_worker_drain(): 0 means no deadline. */
static uint32_t remaining_drain_ms(const struct mk_lib_worker *r, int64_t stop_at)
{
    if (stop_at == MK_SERVER_STOP_NO_DEADLINE)
        return 0;
    int64_t left = stop_at - (int64_t)r->worker.loop.now_ms;
    return left < 1 ? 1 : (uint32_t)left;
}

/* Posted calls and threads wake the loop as well, so only a new deadline sets the drain timer: otherwise, a
 * program that posts at short intervals would postpone the timer forever. */
static void apply_stop_deadline(struct mk_lib_worker *r)
{
    int64_t stop_at = atomic_load(&r->server->stop_at);
    struct mk_worker *w = &r->worker;
    if (stop_at == r->stop_at)
        return;
    r->stop_at = stop_at;
    __atomic_store_n(&r->server->scoreboard.at[r->index].draining, true, __ATOMIC_RELAXED);
    uint32_t span = remaining_drain_ms(r, stop_at);
    if (!w->draining)
        mk_worker_drain(w, stop_at == MK_SERVER_STOP_AT_ONCE,
                        span); /* an immediate stop drops queued connections */
    else if (span)
        mk_loop_set_timer(&w->loop, &w->drain_timer, span);
    if (stop_at == MK_SERVER_STOP_AT_ONCE)
        mk_worker_stop(w);
    close_listeners_if_last(r);
}

/* ---- Listeners ---- */

static void sync_listeners(struct mk_lib_worker *r)
{
    mk_err e = mk_live_listeners_sync(r);
    if (!e)
        return;
    mk_log_error(&r->log.log, "cannot accept connections from a new listener: %s; the server tries again",
                 mk_err_text(e));
    mk_loop_set_timer(&r->worker.loop, &r->listen_retry, LISTEN_RETRY_MS);
}

static void on_listen_retry(struct mk_timer *t)
{
    sync_listeners(MK_CONTAINER(t, struct mk_lib_worker, listen_retry));
}

static void on_wakeup(struct mk_worker *w)
{
    struct mk_lib_worker *r = MK_CONTAINER(w, struct mk_lib_worker, worker);
    sync_listeners(r);
    apply_stop_deadline(r);
}

/* ---- Lifetime ---- */

static mk_err init_log(struct mk_lib_worker *r)
{
    const struct mk_server *s = r->server;
    const struct mk_config_generation *g = s->generation;
    mk_err e = mk_errorlog_init(&r->log, (enum mk_log_level)g->server.log_level, g->error_log);
    r->log.on_message = s->options.on_log;
    r->log.on_message_ctx = s->options.log_ctx;
    r->log.is_silent = true;
    return e;
}

static mk_err init_worker(struct mk_lib_worker *r)
{
    const struct mk_server *s = r->server;
    struct mk_scoreboard_slot *slot = &s->scoreboard.at[r->index];
    uint32_t slow_ms = s->options.slow_loop_ms;
    __atomic_store_n(&slot->pid, gettid(), __ATOMIC_RELAXED);
    return mk_worker_init(&r->worker, &(struct mk_worker_options){.generation = s->generation,
                                                                  .index = r->index,
                                                                  .workers = s->n_workers,
                                                                  .counters = &slot->counters,
                                                                  .scoreboard = s->scoreboard,
                                                                  .log = &r->log.log,
                                                                  .slow_loop_ms = slow_ms == MK_FOREVER ? 0
                                                                                  : slow_ms ? slow_ms
                                                                                            : SLOW_LOOP_MS});
}

/* ---- Hooks ---- */

void mk_lib_worker_add_end_hook(struct mk_lib_worker *r, struct mk_end_hook *h)
{
    h->next = r->end_hooks;
    r->end_hooks = h;
}

void mk_lib_worker_remove_end_hook(struct mk_lib_worker *r, struct mk_end_hook *h)
{
    struct mk_end_hook **at = &r->end_hooks;
    while (*at && *at != h)
        at = &(*at)->next;
    if (*at)
        *at = h->next;
}

static void run_end_hooks(struct mk_lib_worker *r)
{
    while (r->end_hooks) {
        struct mk_end_hook *h = r->end_hooks;
        r->end_hooks = h->next;
        h->run(h);
    }
}

/* ---- Start and stop ---- */

mk_err mk_lib_worker_start(struct mk_lib_worker *r)
{
    mk_err e = init_log(r);
    if (!e)
        e = init_worker(r);
    if (!e && (e = mk_live_listeners_sync(r))) {
        mk_worker_fini(&r->worker);
        mk_live_listeners_leave(r);
    }
    if (e) {
        mk_errorlog_fini(&r->log);
        return e;
    }
    r->worker.on_wakeup = on_wakeup;
    mk_timer_init(&r->listen_retry, on_listen_retry);
    mk_housekeeping_start(r);
    apply_stop_deadline(r); /* a stop that was requested earlier did not wake the loop */
    return 0;
}

void mk_lib_worker_stop(struct mk_lib_worker *r)
{
    mk_housekeeping_stop(r);
    mk_timer_stop(&r->listen_retry);
    mk_worker_handle_close(r->worker_handle);
    mk_worker_fini(&r->worker);
    mk_live_listeners_leave(r);
    if (r->server->generation->shared->statistics)
        mk_stat_clear_gauges(r->server->generation->shared->statistics, r->index + 1);
    run_end_hooks(r);
    close_listeners_if_last(r); /* unless a stop has done so: the loop may have failed */
    mk_errorlog_fini(&r->log);
}
