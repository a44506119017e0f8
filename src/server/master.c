/* SPDX-License-Identifier: Apache-2.0 */
#include "server/master.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "os/daemon.h"
#include "os/fd.h"
#include "os/sd_notify.h"
#include "server/attempt.h"
#include "server/lifecycle.h"
#include "server/logs.h"
#include "server/pid.h"
#include "server/reports.h"
#include "server/upgrade.h"
#include "server/upkeep.h"
#include "server/watchdog.h"
#include "server/workers.h"
#include "setup/plugins.h"

enum { KILL_AFTER_MS = 3000, HAND_OVER_MS = 3000, GIVE_WAY_MS = 2000 };

struct master {
    const struct mk_master_options *o;
    struct mk_lifecycle life;
    bool advances; /* advance() runs: what its steps cause belongs to its next turn */
    struct mk_loop loop;
    struct mk_fd_watch signals;
    int signal_fd;
    struct mk_errorlog log;
    int asked_level; /* the level that a plugin asked for instead; -1: none */
    struct mk_origin origin;
    struct mk_shared shared;
    struct mk_listeners listeners;
    struct mk_workers workers;
    struct mk_watchdog watchdog;
    struct mk_generation *generation; /* the one that serves */
    struct mk_generation *other; /* its successor while that starts, or its predecessor while that drains */
    struct mk_attempt attempt;
    bool is_tried; /* another process has loaded the configuration without an error */
    struct mk_timer kill_timer, hand_over_timer, reload_timer;
    struct mk_upgrade upgrade;
    struct mk_upkeep upkeep;
    struct mk_pid pid;
    int ready_fd; /* to report readiness to the process that the user started, as a daemon */
    int exit_code;
};

static void tell_manager(struct master *m, const char *state)
{
    mk_err e = mk_sd_notify(state);
    if (e)
        mk_log_warn(&m->log.log, "cannot notify the service manager of \"%s\": %s", state, mk_err_text(e));
}

/* ---- Ending ---- */

static void on_kill_time(struct mk_timer *t)
{
    struct master *m = MK_CONTAINER(t, struct master, kill_timer);
    mk_log_warn(&m->log.log, "workers that did not end were killed");
    mk_workers_end(&m->workers, NULL, SIGKILL, false);
}

static void advance(struct master *m);

static void end(struct master *m, int signal, int exit_code)
{
    const struct mk_lifecycle_ending ending = mk_lifecycle_end(&m->life, signal == SIGTERM);
    if (ending.is_first) {
        mk_log_info(&m->log.log, "ending%s", signal == SIGQUIT ? " when all open requests are finished" : "");
        if (!m->upgrade.child) /* else the service goes on with the successor */
            tell_manager(m, "STOPPING=1");
        m->exit_code = exit_code;
    }
    mk_attempt_stop(&m->attempt);
    mk_timer_stop(&m->reload_timer);
    /* Refuse new connections at once, not only when the last download ends: a queue exists as long as any
     * process has its socket open. A successor's socket files stay. */
    mk_listeners_close_all(&m->listeners, !m->upgrade.child);
    mk_workers_end(&m->workers, NULL, signal, signal == SIGQUIT && m->upgrade.child);
    if (ending.kills_starting)
        mk_workers_kill_starting(&m->workers);
    if (ending.has_limit)
        mk_loop_set_timer(&m->loop, &m->kill_timer, KILL_AFTER_MS);
    advance(m);
}

static void fail(struct master *m)
{
    end(m, SIGTERM, MK_EXIT_FAILED);
}

/* ---- Serving ---- */

static void announce(struct master *m)
{
    if (m->o->on_serving)
        m->o->on_serving(m->generation, &m->listeners, m->o->ctx);
    fflush(stdout);
}

static void begin_serving(struct master *m)
{
    char state[64];
    mk_upkeep_follow(&m->upkeep, m->generation);
    mk_listeners_own(
        &m->listeners); /* first: closing a predecessor's unwanted sockets then removes their files */
    mk_listeners_close_unwanted(&m->listeners, true);
    announce(m);
    mk_log_info(&m->log.log, "monkey " MK_VERSION " serves with %u worker%s", m->workers.wanted,
                m->workers.wanted == 1 ? "" : "s");
    if (m->o->origin.path && geteuid() == 0 && !m->generation->has_identity)
        mk_log_warn(&m->log.log, "workers run as root: set User in [SERVER] to drop that privilege");
    snprintf(state, sizeof state, "READY=1\nMAINPID=%d", (int)getpid());
    tell_manager(m, state);
    mk_upgrade_finish(&m->upgrade);
    mk_daemon_notify_parent(&m->ready_fd, MK_EXIT_FINE);
    int null = mk_daemon_open_null();
    for (size_t i = 0; m->o->daemon && i < m->generation->logs.n; i++)
        mk_logfile_redirect_to_null(&m->generation->logs.at[i], null);
    mk_fd_close(&null);
}

static void finish_reload(struct master *m)
{
    mk_timer_stop(&m->hand_over_timer);
    mk_generation_free(m->other);
    m->other = NULL;
    if (!m->upgrade.child) /* a successor manages its own */
        mk_pid_change(&m->pid, &m->log.log, m->generation->server.pid_file);
    mk_log_info(&m->log.log, "the new configuration serves");
    tell_manager(m, "READY=1");
}

/* Report success only once the old workers accept no more. */
static void hand_over(struct master *m)
{
    struct mk_generation *old = m->generation;
    m->generation = m->other;
    m->other = old;
    mk_timer_stop(&m->reload_timer);
    mk_upkeep_follow(&m->upkeep, m->generation);
    m->asked_level = -1;
    mk_history_reloaded(m->workers.places.history); /* before the old workers get the order to end */
    mk_listeners_close_unwanted(&m->listeners, true);
    mk_workers_end(&m->workers, old, SIGQUIT, true);
    mk_loop_set_timer(&m->loop, &m->hand_over_timer, HAND_OVER_MS);
}

static void open_sockets_again(struct master *m);

static enum mk_log_level level_of(const struct master *m, const struct mk_generation *g)
{
    return (enum mk_log_level)(m->asked_level < 0 ? (int)g->server.log_level : m->asked_level);
}

static void free_other(struct master *m)
{
    mk_generation_free(m->other);
    m->other = NULL;
    mk_listeners_close_new(&m->listeners);
    open_sockets_again(m);
}

static void keep_old(struct master *m)
{
    mk_timer_stop(&m->reload_timer);
    tell_manager(m, "READY=1");
}

/* Called when workers of the new generation cannot serve, or have not begun to. */
static void abandon_reload(struct master *m, mk_str why)
{
    mk_workers_end(&m->workers, m->other, SIGKILL, false);
    mk_errorlog_switch(&m->log, level_of(m, m->generation), m->generation->error_log);
    free_other(m);
    mk_listeners_close_unwanted(&m->listeners, true);
    mk_workers_return(&m->workers, m->generation);
    mk_history_stayed(m->workers.places.history, why);
    keep_old(m);
}

/* A worker of the new generation died before all of them served. */
static void fail_reload(struct master *m)
{
    mk_log_error(&m->log.log, "workers cannot serve the new configuration: keeping the old one");
    abandon_reload(m, MK_STR("its workers cannot serve: the error log says why"));
}

/* The new configuration has not begun to serve for so long that it may never do. */
static void give_way(struct master *m)
{
    const mk_str why = MK_STR("the new configuration has not begun to serve: giving it up");
    mk_log_warn(&m->log.log, "%.*s", MK_STR_ARG(why));
    mk_attempt_stop(&m->attempt);
    if (m->other && m->workers.generation == m->other) {
        abandon_reload(m, why);
        return;
    }
    if (m->other)
        free_other(m);
    mk_history_stayed(m->workers.places.history, why);
    keep_old(m);
}

/* ---- Reloading ---- */

/* Opens the addresses of the generation. Without any Listen it uses the inherited sockets, if there are
 * some. */
static mk_err listen_for(struct master *m, const struct mk_generation *g, const struct mk_listen **failed)
{
    struct mk_listen at[MK_LISTENERS_MAX];
    struct mk_listens inherited = {.at = at, .n = mk_listeners_managed(&m->listeners, at)};
    bool use_inherited = g->listens_by_default && inherited.n > 0;
    return mk_listeners_open(&m->listeners, use_inherited ? &inherited : &g->listens, g->server.workers,
                             failed);
}

static mk_err open_sockets(struct master *m, const struct mk_generation *g, struct mk_conf_report *report)
{
    const struct mk_listen *failed = NULL;
    mk_err e = listen_for(m, g, &failed);
    if (e && failed)
        mk_conf_report_error(report, &failed->at, "cannot listen on %.*s: %s", MK_STR_ARG(failed->written),
                             mk_err_text(e));
    if (e == -EADDRINUSE)
        mk_conf_report_hint(report, "another program listens there; choose another port (-p PORT)");
    if (e == -EACCES && failed && mk_sockaddr_port(&failed->addr) < 1024)
        mk_conf_report_hint(report, "ports below 1024 are for root, or for CAP_NET_BIND_SERVICE");
    return e;
}

static void open_sockets_again(struct master *m)
{
    const struct mk_listen *failed = NULL;
    mk_err e = listen_for(m, m->generation, &failed);
    if (e)
        mk_log_error(&m->log.log, "can no longer listen: %s", mk_err_text(e));
}

static void reject(struct master *m)
{
    if (m->other)
        free_other(m);
    mk_log_error(&m->log.log, "the new configuration is rejected: keeping the old one");
    keep_old(m);
}

/* Plugins have prepared, or one of them cannot. */
static void on_prepared(struct mk_attempt *a, bool ok)
{
    struct master *m = MK_CONTAINER(a, struct master, attempt);
    if (m->life.phase.is == MK_PHASE_PREPARING_FIRST)
        mk_reports_print(&a->report);
    else
        mk_reports_log(&m->log.log, m->workers.places.history, &a->report, ok);
    mk_lifecycle_prepared(&m->life, ok);
}

static void start_new(struct master *m)
{
    mk_errorlog_switch(&m->log, (enum mk_log_level)m->other->server.log_level, m->other->error_log);
    mk_err e = mk_workers_start(&m->workers, m->other);
    if (e)
        mk_log_error(&m->log.log, "cannot start workers: %s", mk_err_text(e));
    mk_lifecycle_started(&m->life, !e);
}

static void load(struct master *m)
{
    struct mk_arena arena;
    struct mk_conf_report report;
    struct mk_origin origin = m->origin;
    mk_arena_init(&arena, NULL);
    origin.tried = m->is_tried;
    m->other = mk_generation_load(&origin, &arena, &report);
    if (m->other && open_sockets(m, m->other, &report)) {
        mk_generation_free(m->other);
        m->other = NULL;
    }
    mk_reports_log(&m->log.log, m->workers.places.history, &report, m->other);
    mk_arena_fini(&arena);
    mk_lifecycle_loaded(&m->life, m->other);
    if (m->other)
        mk_attempt_prepare(&m->attempt, m->other);
}

/* Loading runs plugin code, so a child process has tried it first: a plugin that crashes or hangs must not
 * hold the running server. */
static void on_tried(struct mk_attempt *a, int e, mk_str said)
{
    struct master *m = MK_CONTAINER(a, struct master, attempt);
    m->is_tried = !e && !said.len;
    if (!m->is_tried)
        mk_reports_trial(&m->log.log, m->workers.places.history, m->origin.path, e, said);
    mk_lifecycle_tried(&m->life, m->is_tried);
}

static void on_attempt_over(struct mk_attempt *a)
{
    advance(MK_CONTAINER(a, struct master, attempt));
}

static void on_reload_time(struct mk_timer *t)
{
    struct master *m = MK_CONTAINER(t, struct master, reload_timer);
    mk_lifecycle_slow(&m->life);
    advance(m);
}

static void try_reload(struct master *m)
{
    char state[96];
    snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, mk_clock_us());
    tell_manager(m, state);
    mk_history_reload(m->workers.places.history);
    if (m->o->look)
        m->o->look(&m->log.log, m->o->ctx);
    m->origin.previous = m->generation;
    mk_loop_set_timer(&m->loop, &m->reload_timer, GIVE_WAY_MS);
    m->is_tried = false;
    if (mk_attempt_try(&m->attempt)) /* no process for a trial: load it without one */
        mk_lifecycle_tried(&m->life, true);
}

static void reload(struct master *m)
{
    mk_lifecycle_reload(&m->life);
    advance(m);
}

static void on_files_changed(struct mk_upkeep *u)
{
    struct master *m = MK_CONTAINER(u, struct master, upkeep);
    if (m->life.phase.is == MK_PHASE_ENDING)
        return;
    mk_log_info(&m->log.log, "watched files have changed: reloading the configuration");
    reload(m);
}

/* ---- Steps ---- */

static void start_first(struct master *m)
{
    mk_err e = mk_workers_start(&m->workers, m->generation);
    if (e)
        mk_reports_complain("cannot start: %s", mk_err_text(e));
    mk_lifecycle_started(&m->life, !e);
}

static void leave_loop(struct master *m)
{
    mk_loop_stop(&m->loop);
}

static struct mk_lifecycle_workers look_at_workers(const struct master *m)
{
    const struct mk_workers *w = &m->workers;
    return (struct mk_lifecycle_workers){
        .wanted = w->wanted,
        .there = mk_workers_count(w, w->generation, false),
        .ready = mk_workers_count(w, w->generation, true),
        .old_wanted = m->generation->server.workers,
        .old_there = mk_workers_count(w, m->generation, false),
        .all = mk_workers_count_all(w),
        .accept_still = mk_workers_accept_still(w),
    };
}

typedef void run_step(struct master *m);

/* Does all that follows from what has happened. */
static void advance(struct master *m)
{
    static run_step *const steps[] = {
        [MK_STEP_START_FIRST] = start_first,
        [MK_STEP_SERVE] = begin_serving,
        [MK_STEP_FAIL] = fail,
        [MK_STEP_TRY] = try_reload,
        [MK_STEP_LOAD] = load,
        [MK_STEP_START_NEW] = start_new,
        [MK_STEP_REJECT] = reject,
        [MK_STEP_ABANDON] = fail_reload,
        [MK_STEP_GIVE_WAY] = give_way,
        [MK_STEP_HAND_OVER] = hand_over,
        [MK_STEP_FINISH] = finish_reload,
        [MK_STEP_STOP] = leave_loop,
    };
    enum mk_step step = MK_STEP_START_FIRST;
    if (m->advances)
        return;
    m->advances = true;
    while (step != MK_STEP_WAIT && step != MK_STEP_STOP) {
        const struct mk_lifecycle_workers w = look_at_workers(m);
        step = mk_lifecycle_next(&m->life, &w);
        if (step != MK_STEP_WAIT)
            steps[step](m);
    }
    m->advances = false;
}

static void on_workers(struct mk_workers *w)
{
    struct master *m = MK_CONTAINER(w, struct master, workers);
    if (w->early_death)
        mk_lifecycle_early_death(&m->life);
    w->early_death = false;
    advance(m);
}

static void on_hand_over_time(struct mk_timer *t)
{
    struct master *m = MK_CONTAINER(t, struct master, hand_over_timer);
    if (m->life.phase.is != MK_PHASE_HANDING_OVER)
        return;
    mk_log_warn(&m->log.log, "old workers do not answer: they may still accept connections");
    mk_lifecycle_late(&m->life);
    advance(m);
}

/* ---- Logs ---- */

static void reopen_logs(struct master *m)
{
    mk_logs_reopen(&m->workers, m->generation);
    if (m->other)
        mk_logs_reopen(&m->workers, m->other);
    mk_log_info(&m->log.log, "reopened the logs");
}

/* ---- Requests of workers ---- */

/* Until a configuration sets another one. */
static void set_log_level(struct master *m, int level)
{
    if (level < 0 || level >= MK_LOG_LEVELS)
        return;
    m->asked_level = level;
    m->log.log.level = (enum mk_log_level)level;
    mk_workers_tell(&m->workers,
                    &(struct mk_control_message){.kind = MK_CONTROL_LOG_LEVEL, .number = level, .fd = -1});
    mk_log_info(&m->log.log, "the log level is now %s", mk_log_level_names[level]);
}

static void on_ask(struct mk_workers *w, const struct mk_control_message *ask)
{
    struct master *m = MK_CONTAINER(w, struct master, workers);
    struct mk_generation *const generations[] = {m->generation, m->other};
    if (m->life.phase.is == MK_PHASE_ENDING)
        return;
    if (ask->kind == MK_CONTROL_RELOAD) {
        mk_log_info(&m->log.log, "a plugin requests a reload: reloading the configuration");
        reload(m);
    } else if (ask->kind == MK_CONTROL_LOG_LEVEL) {
        set_log_level(m, ask->number);
    } else if (ask->kind == MK_CONTROL_ROTATE) {
        mk_logs_rotate_if_full(w, generations, MK_LEN(generations), ask->text);
    }
}

/* ---- Signals ---- */

static void start_upgrade(struct master *m)
{
    if (!mk_lifecycle_may_upgrade(&m->life) || m->upgrade.child) {
        mk_log_warn(&m->log.log, "cannot start a new program: another operation is in progress");
        return;
    }
    mk_pid_drop(&m->pid); /* the successor writes its own */
    mk_err e = mk_upgrade_start(&m->upgrade, &m->shared, &m->listeners, m->o->argv);
    if (e) {
        mk_log_error(&m->log.log, "cannot start the new program: %s", mk_err_text(e));
        mk_pid_take_again(&m->pid);
    } else {
        mk_log_info(&m->log.log, "the new program is process %d", (int)m->upgrade.child);
    }
}

static void on_other(struct mk_workers *w, pid_t pid, int status)
{
    mk_attempt_bury(&MK_CONTAINER(w, struct master, workers)->attempt, pid, status);
}

static void on_child(struct master *m)
{
    if (mk_upgrade_failed(&m->upgrade)) {
        mk_log_error(&m->log.log, "the new program ended before it was ready: keeping the old one");
        mk_pid_take_again(&m->pid);
    }
    mk_workers_reap(&m->workers);
}

static void handle_signal(struct master *m, int signal)
{
    switch (signal) {
    case SIGHUP:
        reload(m);
        break;
    case SIGUSR1:
        reopen_logs(m);
        break;
    case SIGUSR2:
        start_upgrade(m);
        break;
    case SIGCHLD:
        on_child(m);
        break;
    case SIGQUIT:
        end(m, SIGQUIT, MK_EXIT_FINE);
        break;
    default:
        end(m, SIGTERM, MK_EXIT_FINE);
        break;
    }
}

static void on_signal(struct mk_fd_watch *w, uint32_t events)
{
    struct master *m = MK_CONTAINER(w, struct master, signals);
    struct signalfd_siginfo info;
    (void)events;
    while (read(m->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
        handle_signal(m, (int)info.ssi_signo);
}

/* Runs in each new worker. Closes the pid file: a worker that could write to it could choose which process
 * the administrator kills. */
static void on_child_begins(struct mk_workers *w)
{
    struct master *m = MK_CONTAINER(w, struct master, workers);
    struct mk_generation *other = w->generation == m->other ? m->generation : m->other;
    mk_fd_close(&m->pid.fd);
    mk_fd_close(&m->attempt.said_fd);
    mk_fd_close(&m->signal_fd);
    mk_fd_close(&m->ready_fd);
    if (other && other != w->generation)
        mk_generation_free(other);
}

/* ---- Life ---- */

static mk_err start_loop(struct master *m)
{
    mk_err e = mk_loop_init(&m->loop);
    if (e)
        return e;
    m->signal_fd = mk_process_signal_fd();
    m->signals.on_ready = on_signal;
    mk_timer_init(&m->kill_timer, on_kill_time);
    mk_timer_init(&m->hand_over_timer, on_hand_over_time);
    mk_timer_init(&m->reload_timer, on_reload_time);
    mk_attempt_init(&m->attempt, &m->loop, &m->origin);
    m->attempt.on_tried = on_tried;
    m->attempt.on_prepared = on_prepared;
    m->attempt.on_over = on_attempt_over;
    mk_upkeep_init(&m->upkeep, &m->loop, &m->log.log, on_files_changed);
    if (m->o->look)
        mk_upkeep_also(&m->upkeep, m->o->look, m->o->ctx);
    if (m->signal_fd < 0)
        return m->signal_fd;
    e = mk_loop_add(&m->loop, m->signal_fd, &m->signals, EPOLLIN);
    if (!e)
        e = mk_workers_init(&m->workers, &m->loop, &m->log, &m->listeners);
    mk_watchdog_start(&m->watchdog, &m->workers);
    m->workers.silent = m->o->daemon;
    m->workers.on_change = on_workers;
    m->workers.on_other = on_other;
    m->workers.on_child = on_child_begins;
    m->workers.on_ask = on_ask;
    return e;
}

/* A socket from the service manager that no Listen wants: connections to it would never be answered. */
static void warn_of_unwanted(const struct master *m, struct mk_conf_report *report)
{
    const struct mk_conf_source_pos at = {.file = MK_STR("LISTEN_FDS")};
    for (unsigned i = 0; m->generation && i < m->listeners.n; i++) {
        char room[MK_SOCKADDR_TEXT_MAX];
        struct mk_buf addr = mk_buf_fixed(room, sizeof room);
        mk_sockaddr_format(&m->listeners.at[i].addr, &addr);
        if (m->listeners.at[i].managed && !m->listeners.at[i].wanted)
            mk_conf_report_warn(report, &at, "no Listen names the passed socket %.*s: closed",
                                MK_STR_ARG(mk_buf_str(&addr)));
    }
}

static int load_and_listen(struct master *m)
{
    struct mk_arena arena;
    struct mk_conf_report report;
    mk_arena_init(&arena, NULL);
    m->generation = mk_generation_load(&m->origin, &arena, &report);
    int code = m->generation                           ? MK_EXIT_FINE
               : mk_conf_report_out_of_memory(&report) ? MK_EXIT_FAILED
                                                       : MK_EXIT_CONFIGURATION;
    mk_listeners_inherit(&m->listeners, NULL);
    if (m->generation && open_sockets(m, m->generation, &report))
        code = MK_EXIT_FAILED;
    /* Inherited but not configured: connections to it would never be answered. */
    warn_of_unwanted(m, &report);
    mk_reports_print(&report);
    mk_arena_fini(&arena);
    return code;
}

static int start(struct master *m)
{
    int code = load_and_listen(m);
    if (code)
        return code;
    if (m->o->daemon && !m->upgrade.predecessor) {
        mk_err e = mk_daemon_start(&m->ready_fd);
        if (e) {
            mk_reports_complain("cannot run in the background: %s", mk_err_text(e));
            return MK_EXIT_FAILED;
        }
    }
    if (mk_errorlog_init(&m->log, (enum mk_log_level)m->generation->server.log_level,
                         m->generation->error_log)) {
        mk_reports_complain("out of memory");
        return MK_EXIT_FAILED;
    }
    mk_process_block_signals(); /* a script may send one as soon as the pid file exists */
    const char *problem = mk_pid_take(&m->pid, m->generation->server.pid_file);
    if (problem) {
        mk_reports_complain("cannot lock the pid file %.*s: %s", MK_STR_ARG(m->generation->server.pid_file),
                            problem);
        return MK_EXIT_FAILED;
    }
    mk_err e = start_loop(m);
    if (!e)
        mk_attempt_prepare(&m->attempt, m->generation);
    if (e)
        mk_reports_complain("cannot start: %s", mk_err_text(e));
    return e ? MK_EXIT_FAILED : MK_EXIT_FINE;
}

static void close_all(struct master *m)
{
    mk_listeners_close_all(&m->listeners, !m->upgrade.child); /* a successor's socket files stay */
    mk_pid_drop(&m->pid);
    if (m->workers.procs)
        mk_workers_fini(&m->workers);
    mk_errorlog_fini(&m->log); /* before its file */
    if (m->other)
        mk_generation_free(m->other);
    if (m->generation)
        mk_generation_free(m->generation);
    mk_shared_fini(&m->shared);
    mk_fd_close(&m->signal_fd);
    if (m->loop.epoll_fd > 0)
        mk_loop_fini(&m->loop);
}

int mk_master_run(const struct mk_master_options *o)
{
    struct master *m = mk_mem_zalloc(1, sizeof *m);
    if (!m) {
        mk_reports_complain("out of memory");
        return MK_EXIT_FAILED;
    }
    *m = (struct master){.o = o, .ready_fd = -1, .signal_fd = -1, .asked_level = -1, .origin = o->origin};
    m->origin.shared = &m->shared;
    tzset(); /* in the sandbox, workers cannot read the time zone */
    mk_pid_init(&m->pid);
    mk_upgrade_init(&m->upgrade, &m->shared);
    int code = start(m);
    if (!code) {
        mk_err e = mk_loop_run(&m->loop);
        code = e ? MK_EXIT_FAILED : m->exit_code;
    }
    close_all(m);
    mk_daemon_notify_parent(&m->ready_fd, code);
    mk_pid_fini(&m->pid);
    mk_mem_free(m);
    return code;
}
