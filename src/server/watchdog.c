/* SPDX-License-Identifier: Apache-2.0 */
#include "server/watchdog.h"

#include "logs/errorlog.h"
#include "os/proc.h"

/* If a worker blocks right after a check, the fifth check after that reports it, within 2 seconds. */
enum { LOOK_MS = 375, LATE_MS = 1000, STUCK_MS = 1500 };

static void report_blocked_worker(struct mk_worker_slot *p, uint64_t ms)
{
    char buf[384];
    struct mk_buf work = mk_buf_fixed(buf, sizeof buf);
    mk_scoreboard_describe_slot(p->slot, &work);
    p->stuck = true;
    mk_log_error(&p->all->log->log, "worker %d serves nothing: it has been blocked for %u ms; %.*s",
                 (int)p->pid, (unsigned)ms, MK_STR_ARG(mk_buf_str(&work)));
}

static void check_worker(struct mk_worker_slot *p, uint64_t limit_ms)
{
    struct mk_workers *w = p->all;
    uint64_t pulse = __atomic_load_n(&p->slot->counters.pulse, __ATOMIC_RELAXED);
    if (!(pulse & 1) || pulse != p->pulse) {
        if (p->stuck)
            mk_log_warn(&w->log->log, "worker %d serves again", (int)p->pid);
        p->pulse = pulse;
        p->changed_ms = w->loop->now_ms;
        p->stuck = false;
        return;
    }
    uint64_t ms = w->loop->now_ms - p->changed_ms;
    if (ms >= STUCK_MS && mk_proc_is_stopped(p->pid)) { /* a debugger or SIGSTOP, not a plugin, stopped it */
        p->changed_ms = w->loop->now_ms;
        return;
    }
    if (ms >= STUCK_MS && !p->stuck)
        report_blocked_worker(p, ms);
    if (limit_ms && ms >= limit_ms) {
        mk_log_error(&w->log->log, "killed worker %d: WatchdogTimeout has expired", (int)p->pid);
        p->changed_ms = w->loop->now_ms; /* do not kill it again at once: the process may take a moment to
                                          * die */
        kill(p->pid, SIGKILL);
    }
}

static void on_watchdog_timer(struct mk_timer *t)
{
    struct mk_watchdog *d = MK_CONTAINER(t, struct mk_watchdog, timer);
    struct mk_workers *w = d->workers;
    uint64_t now = w->loop->now_ms;
    /* If the master itself was stopped, the workers may have been stopped as well. */
    bool late = now - d->checked_ms > LATE_MS;
    d->checked_ms = now;
    for (size_t i = 0; i < w->n_procs; i++) {
        if (late)
            w->procs[i]->changed_ms = now;
        if (w->procs[i]->state.current != MK_WORKER_FREE)
            check_worker(w->procs[i], w->generation->server.loop_ms);
    }
    mk_errorlog_report_lost(&w->log->log); /* reports lost lines now: the master may write nothing else for
                                            * hours */
    mk_loop_set_timer(w->loop, t, LOOK_MS);
}

void mk_watchdog_start(struct mk_watchdog *d, struct mk_workers *w)
{
    *d = (struct mk_watchdog){.workers = w, .checked_ms = w->loop->now_ms};
    mk_timer_init(&d->timer, on_watchdog_timer);
    mk_loop_set_timer(w->loop, &d->timer, LOOK_MS);
}
