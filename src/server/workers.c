/* SPDX-License-Identifier: Apache-2.0 */
#include "server/workers.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/stats.h"
#include "os/fd.h"
#include "setup/worker_channels.h"

enum {
    RETRY_MS = 10000, /* delay after a failed fork */
    MESSAGES_MAX = 64 /* per iteration */
};

/* ---- States ---- */

#define TO(state) MK_STATE_TO(MK_WORKER_##state)

static const struct mk_state_table states = {
    MK_STATE_ROW(MK_WORKER_FREE, "free", TO(ACTIVE)),
    MK_STATE_ROW(MK_WORKER_ACTIVE, "active", TO(STOPPING) | TO(DRAINING) | TO(FREE)),
    MK_STATE_ROW(MK_WORKER_STOPPING, "stopping", TO(DRAINING) | TO(FREE)),
    MK_STATE_ROW(MK_WORKER_DRAINING, "draining", TO(FREE)),
};

const struct mk_state_machine mk_worker_machine = {"worker", &states, MK_WORKER_STATES, NULL};

static void move_worker(struct mk_worker_slot *p, enum mk_worker_state to)
{
    mk_state_move(&p->state, &mk_worker_machine, p, to);
    p->slot->draining = to == MK_WORKER_STOPPING || to == MK_WORKER_DRAINING;
}

static bool is_free(const struct mk_worker_slot *p)
{
    return p->state.current == MK_WORKER_FREE;
}

static bool is_active(const struct mk_worker_slot *p, const struct mk_config_generation *g)
{
    /* A draining worker's generation may have been freed, and its address reused. */
    return p->state.current == MK_WORKER_ACTIVE && p->generation == g;
}

/* ---- The set of workers ---- */

mk_err mk_workers_init(struct mk_workers *w, struct mk_loop *loop, struct mk_errorlog *log,
                       struct mk_listeners *listeners)
{
    *w = (struct mk_workers){.loop = loop, .log = log, .listeners = listeners, .master = getpid()};
    w->scoreboard = (struct mk_scoreboard){.master_pid = w->master, .started_at = loop->now_unix};
    mk_arena_init(&w->memory, NULL);
    return mk_scoreboard_init(&w->scoreboard, MK_WORKERS_MAX);
}

static void close_control_channels(struct mk_workers *w)
{
    for (size_t i = 0; i < w->n_procs; i++)
        if (!is_free(w->procs[i])) {
            mk_fd_close(&w->procs[i]->control_fd);
            mk_control_queue_clear(&w->procs[i]->outbox);
        }
}

void mk_workers_fini(struct mk_workers *w)
{
    close_control_channels(w);
    mk_scoreboard_fini(&w->scoreboard);
    mk_arena_fini(&w->memory);
}

static void replace_draining_worker(struct mk_worker_slot *p);
static void handle_replacement_request(struct mk_worker_slot *p);

/* ---- Messages ---- */

static void send_to_worker(struct mk_worker_slot *p, const struct mk_control_message *m)
{
    struct mk_workers *w = p->all;
    bool has_waited = p->outbox.first;
    mk_err e = mk_control_queue_send(&p->outbox, p->control_fd, m);
    if (!has_waited && p->outbox.first)
        (void)!mk_loop_modify(w->loop, p->control_fd, &p->control, EPOLLIN | EPOLLOUT);
    if (e && e != -EPIPE)
        mk_log_warn(&w->log->log, "cannot send messages to worker %d: %s", (int)p->pid, mk_err_text(e));
}

/* Tells the workers that `by` replaces to receive no more plugin messages. They may still serve requests. */
static void notify_replaced_workers(const struct mk_worker_slot *by)
{
    static const struct mk_control_message replaced = {.kind = MK_CONTROL_REPLACED, .fd = -1};
    for (size_t i = 0; i < by->all->n_procs; i++) {
        struct mk_worker_slot *p = by->all->procs[i];
        if (p != by && !is_free(p) && p->serial == by->serial && p->index == by->index)
            send_to_worker(p, &replaced);
    }
}

static void handle_worker_message(struct mk_worker_slot *p, const struct mk_control_message *m)
{
    if (m->kind == MK_CONTROL_REPLACE) {
        handle_replacement_request(p);
        return;
    }
    if (m->kind != MK_CONTROL_READY && m->kind != MK_CONTROL_DRAINS) {
        p->all->on_worker_request(p->all, m);
        return;
    }
    if (m->kind == MK_CONTROL_READY)
        p->ready = true;
    else if (p->state.current == MK_WORKER_ACTIVE)
        replace_draining_worker(p);
    else if (p->state.current == MK_WORKER_STOPPING)
        move_worker(p, MK_WORKER_DRAINING);
    p->all->on_change(p->all);
}

static void on_worker_message(struct mk_fd_watch *watch, uint32_t events)
{
    struct mk_worker_slot *p = MK_CONTAINER(watch, struct mk_worker_slot, control);
    struct mk_loop *loop = p->all->loop;
    struct mk_control_buffer buf;
    struct mk_control_message m;
    mk_err e = 0;
    if (is_free(p))
        return;
    if (events & EPOLLOUT && mk_control_queue_flush(&p->outbox, p->control_fd) == 0)
        (void)!mk_loop_modify(loop, p->control_fd, watch, EPOLLIN);
    /* Leaves further messages for the next iteration, because signals may be waiting. */
    for (int i = 0; i < MESSAGES_MAX && (e == 0 || e == -EBADMSG); i++) {
        e = mk_control_receive(p->control_fd, &buf, &m);
        if (e)
            continue;
        mk_fd_close(&m.fd); /* closes an unexpected descriptor: messages to the master carry none */
        handle_worker_message(p, &m);
    }
    if (e == -EPIPE)
        mk_loop_remove(loop, p->control_fd);
}

/* ---- Starting ---- */

_Static_assert((int)MK_WORKERS_MAX + 1 == (int)MK_STAT_ROWS, "each worker has a row of its own");

static struct mk_worker_slot *add_slot(struct mk_workers *w)
{
    struct mk_worker_slot *p = mk_arena_zalloc(&w->memory, 1, sizeof *p);
    if (!p || !mk_arena_append(&w->memory, &w->procs, &w->n_procs, &p, sizeof p))
        return NULL;
    p->slot = &w->scoreboard.at[w->n_procs - 1];
    return p;
}

/* Returns 0, -EAGAIN if there are too many workers, or -ENOMEM. */
static mk_err acquire_slot(struct mk_workers *w, struct mk_worker_slot **out)
{
    for (size_t i = 0; i < w->n_procs; i++)
        if (is_free(w->procs[i])) {
            *out = w->procs[i];
            return 0;
        }
    if (w->n_procs == MK_WORKERS_MAX)
        return -EAGAIN;
    *out = add_slot(w);
    return *out ? 0 : -ENOMEM;
}

static void on_restart_timer(struct mk_timer *t);

/* Returns NULL if out of memory; never for an index for which start_worker() has succeeded before. */
static struct mk_worker_restart *get_worker_restart(struct mk_workers *w, unsigned index)
{
    while (w->n_restarts <= index) {
        struct mk_worker_restart *r = mk_arena_alloc(&w->memory, sizeof *r);
        if (!r)
            return NULL;
        *r = (struct mk_worker_restart){.all = w, .index = (unsigned)w->n_restarts};
        mk_timer_init(&r->timer, on_restart_timer);
        if (!mk_arena_append(&w->memory, &w->restarts, &w->n_restarts, &r, sizeof r))
            return NULL;
    }
    return w->restarts[index];
}

/* Runs the worker in the child process, after closing the descriptors of the master and of its other
 * children. */
static _Noreturn void run_worker_child(struct mk_workers *w, struct mk_worker_slot *p, int control_fd)
{
    mk_fd_close(&p->control_fd); /* otherwise the child would not notice the master's death */
    close_control_channels(w);
    mk_worker_channels_keep_own(w->generation, p->index);
    mk_loop_fini(w->loop);
    if (w->on_child)
        w->on_child(w);
    const struct mk_worker_process_options o = {
        .generation = w->generation,
        .listeners = w->listeners,
        .index = p->index,
        .workers = w->wanted,
        .counters = &p->slot->counters,
        .scoreboard = w->scoreboard,
        .log = w->log,
        .control_fd = control_fd,
        .silent = w->silent,
        .master = w->master,
    };
    _exit(mk_worker_process_main(&o));
}

static mk_err start_worker(struct mk_workers *w, unsigned index)
{
    struct mk_worker_slot *p = NULL;
    int control_fd;
    mk_err e = get_worker_restart(w, index) ? acquire_slot(w, &p) : -ENOMEM;
    if (e)
        return e;
    *p = (struct mk_worker_slot){.control = {.on_ready = on_worker_message},
                                 .all = w,
                                 .slot = p->slot,
                                 .index = index,
                                 .generation = w->generation,
                                 .serial = w->generation->serial,
                                 .started_ms = w->loop->now_ms};
    mk_state_init(&p->state, &mk_worker_machine, MK_WORKER_FREE);
    mk_scoreboard_reassign_slot(&w->scoreboard, p->slot, (uint64_t)w->loop->now_unix);
    e = mk_control_open(&p->control_fd, &control_fd);
    if (e)
        return e;
    pid_t pid = fork();
    if (pid == 0)
        run_worker_child(w, p, control_fd);
    e = pid < 0 ? mk_err_last() : 0;
    mk_fd_close(&control_fd);
    if (!e)
        e = mk_loop_add(w->loop, p->control_fd, &p->control, EPOLLIN);
    if (pid > 0) {
        p->slot->pid = p->pid = pid;
        move_worker(p, MK_WORKER_ACTIVE);
        notify_replaced_workers(p);
    } else {
        mk_fd_close(&p->control_fd);
    }
    return e;
}

/* Makes the workers of this generation the current set, and cancels pending restarts of the previous set. */
static void set_generation(struct mk_workers *w, struct mk_config_generation *g)
{
    w->generation = g;
    if (!g->serial)
        g->serial = ++w->n_generations;
    w->wanted = g->server.workers;
    for (size_t i = 0; i < w->n_restarts; i++) {
        mk_timer_stop(&w->restarts[i]->timer);
        w->restarts[i]->young_deaths = 0;
        w->restarts[i]->replacements = (struct mk_lifecycle_replacements){0};
    }
}

mk_err mk_workers_start(struct mk_workers *w, struct mk_config_generation *g)
{
    set_generation(w, g);
    mk_err e = mk_worker_channels_open(g);
    for (unsigned i = 0; i < w->wanted && !e; i++)
        e = start_worker(w, i);
    return e;
}

/* ---- Counting and stopping ---- */

unsigned mk_workers_count(const struct mk_workers *w, const struct mk_config_generation *g, bool only_ready)
{
    unsigned n = 0;
    for (size_t i = 0; i < w->n_procs; i++) {
        const struct mk_worker_slot *p = w->procs[i];
        n += is_active(p, g) && (p->ready || !only_ready);
    }
    return n;
}

unsigned mk_workers_count_all(const struct mk_workers *w)
{
    unsigned n = 0;
    for (size_t i = 0; i < w->n_procs; i++)
        n += !is_free(w->procs[i]);
    return n;
}

void mk_workers_stop(struct mk_workers *w, const struct mk_config_generation *g, int signal,
                     bool has_successor)
{
    for (size_t i = 0; i < w->n_procs; i++) {
        struct mk_worker_slot *p = w->procs[i];
        if (is_free(p) || (g && !is_active(p, g)))
            continue;
        if (p->state.current == MK_WORKER_ACTIVE)
            move_worker(p, MK_WORKER_STOPPING);
        if (!has_successor || mk_control_send_kind(p->control_fd, MK_CONTROL_DRAIN_FOR_SUCCESSOR))
            kill(p->pid, signal);
    }
    if (!g)
        w->ending = true;
}

bool mk_workers_may_still_accept(const struct mk_workers *w, const struct mk_config_generation *g)
{
    for (size_t i = 0; i < w->n_procs; i++)
        if (w->procs[i]->state.current == MK_WORKER_STOPPING && w->procs[i]->serial == g->serial)
            return true;
    return false;
}

void mk_workers_broadcast(struct mk_workers *w, const struct mk_control_message *m)
{
    for (size_t i = 0; i < w->n_procs; i++)
        if (!is_free(w->procs[i]))
            send_to_worker(w->procs[i], m);
}

/* ---- Exits and restarts ---- */

static void on_restart_timer(struct mk_timer *t)
{
    struct mk_worker_restart *r = MK_CONTAINER(t, struct mk_worker_restart, timer);
    struct mk_workers *w = r->all;
    if (w->ending || r->index >= w->wanted)
        return;
    mk_err e = start_worker(w, r->index);
    if (e) {
        mk_log_error(&w->log->log, "cannot start worker %u: %s", r->index, mk_err_text(e));
        mk_loop_set_timer(w->loop, t, RETRY_MS);
    }
}

static void report_death(struct mk_workers *w, const struct mk_worker_slot *p, int status)
{
    char buf[384];
    struct mk_buf work = mk_buf_fixed(buf, sizeof buf);
    mk_scoreboard_describe_slot(p->slot, &work);
    if (WIFSIGNALED(status))
        mk_log_error(&w->log->log, "worker %d was killed by signal %d (%s); %.*s", (int)p->pid,
                     WTERMSIG(status), strsignal(WTERMSIG(status)), MK_STR_ARG(mk_buf_str(&work)));
    else
        mk_log_error(&w->log->log, "worker %d exited unexpectedly with code %d", (int)p->pid,
                     WEXITSTATUS(status));
}

/* Schedules a replacement for a worker if it belongs to the current set. */
static void schedule_restart(const struct mk_worker_slot *p)
{
    struct mk_workers *w = p->all;
    if (p->generation != w->generation)
        return;
    w->early_death |= !p->ready;
    struct mk_worker_restart *r = get_worker_restart(w, p->index);
    uint32_t pause = mk_lifecycle_restart_pause(&r->young_deaths, w->loop->now_ms - p->started_ms);
    if (pause)
        mk_loop_set_timer(w->loop, &r->timer, pause);
    else
        on_restart_timer(&r->timer);
}

static void remove_ended_worker(struct mk_workers *w, struct mk_worker_slot *p, int status)
{
    bool is_news = p->state.current == MK_WORKER_ACTIVE && !w->ending;
    if (is_news)
        report_death(w, p, status);
    mk_fd_close(&p->control_fd);
    mk_control_queue_clear(&p->outbox);
    move_worker(p, MK_WORKER_FREE);
    p->slot->pid = 0;
    if (w->generation && w->generation->shared->statistics)
        mk_stat_clear_gauges(w->generation->shared->statistics, (unsigned)(p->slot - w->scoreboard.at) + 1);
    mk_workers_broadcast(w, &(struct mk_control_message){.kind = MK_CONTROL_EXIT, .fd = -1});
    if (is_news)
        schedule_restart(p);
}

/* Replaces a worker that has reported that it is draining, although the master did not tell it to: for
 * example because another process sent it a signal. */
static void replace_draining_worker(struct mk_worker_slot *p)
{
    struct mk_workers *w = p->all;
    move_worker(p, MK_WORKER_DRAINING);
    if (w->ending)
        return;
    mk_log_info(&w->log->log, "worker %d accepts no more connections: starting a replacement", (int)p->pid);
    schedule_restart(p);
}

/* Tells the worker to drain. Its replacement starts when the worker has reported that it is draining. */
static void handle_replacement_request(struct mk_worker_slot *p)
{
    static const struct mk_control_message drain = {.kind = MK_CONTROL_DRAIN_FOR_SUCCESSOR, .fd = -1};
    struct mk_workers *w = p->all;
    if (!is_active(p, w->generation) || w->ending)
        return;
    uint32_t pause =
        mk_lifecycle_replacement_pause(&get_worker_restart(w, p->index)->replacements, w->loop->now_ms);
    if (!pause) {
        send_to_worker(p, &drain);
    } else if (!p->replacement_delayed) {
        p->replacement_delayed = true;
        mk_log_warn(&w->log->log,
                    "worker %d requests its replacement too soon after the last one: "
                    "the next replacement is possible in %u s",
                    (int)p->pid, (pause + 999) / 1000);
    }
}

void mk_workers_kill_starting(struct mk_workers *w)
{
    for (size_t i = 0; i < w->n_procs; i++) {
        const struct mk_worker_slot *p = w->procs[i];
        if (!is_free(p) && !p->ready)
            kill(p->pid, SIGKILL);
    }
}

static bool has_worker_with_index(const struct mk_workers *w, unsigned index)
{
    for (size_t i = 0; i < w->n_procs; i++) {
        const struct mk_worker_slot *p = w->procs[i];
        if (is_active(p, w->generation) && p->index == index)
            return true;
    }
    return false;
}

void mk_workers_return_to_config(struct mk_workers *w, struct mk_config_generation *g)
{
    set_generation(w, g);
    for (unsigned i = 0; i < w->wanted; i++)
        if (!has_worker_with_index(w, i))
            on_restart_timer(&get_worker_restart(w, i)->timer);
}

static struct mk_worker_slot *find_slot_by_pid(struct mk_workers *w, pid_t pid)
{
    for (size_t i = 0; i < w->n_procs; i++)
        if (!is_free(w->procs[i]) && w->procs[i]->pid == pid)
            return w->procs[i];
    return NULL;
}

void mk_workers_reap(struct mk_workers *w)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        struct mk_worker_slot *p = find_slot_by_pid(w, pid);
        if (p)
            remove_ended_worker(w, p, status);
        else
            w->on_other_child(w, pid, status);
    }
    w->on_change(w);
}
