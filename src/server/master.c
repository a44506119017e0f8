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
#include "server/certificate_monitor.h"
#include "server/config_history.h"
#include "server/config_trial.h"
#include "server/lifecycle.h"
#include "server/log_rotation.h"
#include "server/master_housekeeping.h"
#include "server/master_pid_file.h"
#include "server/report_output.h"
#include "server/signals.h"
#include "server/upgrade.h"
#include "server/watchdog.h"
#include "server/workers.h"
#include "setup/plugins.h"

enum { KILL_AFTER_MS = 3000, HAND_OVER_MS = 3000, SLOW_MS = 2000, CONFIRM_MAX_S = 86400 };

struct master {
    const struct mk_master_options *o;
    struct mk_lifecycle life;
    bool advances; /* run_due_steps() is running: its loop also handles events that its steps cause */
    struct mk_loop loop;
    struct mk_fd_watch signals;
    int signal_fd;
    struct mk_errorlog log;
    int plugin_log_level; /* log level set by a plugin; -1: none */
    struct mk_config_source origin;
    struct mk_shared_state shared;
    struct mk_listeners listeners;
    struct mk_workers workers;
    struct mk_watchdog watchdog;
    struct mk_config_generation *generation; /* the active generation */
    struct mk_config_generation
        *other; /* the next generation while it starts, or the previous generation while it drains */
    struct mk_config_history *history;
    struct mk_reload_orders orders,
        next_orders; /* that wait for the reload in progress, and for the next one */
    struct mk_config_trial attempt;
    bool is_tried; /* a trial process has loaded the configuration without errors */
    struct mk_timer kill_timer, hand_over_timer, reload_timer;
    struct mk_upgrade upgrade;
    struct mk_master_housekeeping housekeeping;
    struct mk_certificate_monitor certificates;
    struct mk_master_pid_file pid;
    int ready_fd; /* reports readiness of a daemon to the process that the user started */
    int exit_code;
};

static void notify_service_manager(struct master *m, const char *state)
{
    mk_err e = mk_sd_notify(state);
    if (e)
        mk_log_warn(&m->log.log, "cannot notify the service manager of \"%s\": %s", state, mk_err_text(e));
}

/* ---- Ending ---- */

static void on_kill_timeout(struct mk_timer *t)
{
    struct master *m = MK_CONTAINER(t, struct master, kill_timer);
    mk_log_warn(&m->log.log, "killed workers that did not exit in time");
    mk_workers_stop(&m->workers, NULL, SIGKILL, false);
}

static void run_due_steps(struct master *m);

static void begin_shutdown(struct master *m, int signal, int exit_code)
{
    const struct mk_lifecycle_shutdown ending = mk_lifecycle_begin_shutdown(&m->life, signal == SIGTERM);
    if (ending.is_first) {
        mk_log_info(&m->log.log, "shutting down%s",
                    signal == SIGQUIT ? " when all open requests are finished" : "");
        if (!m->upgrade.child) /* otherwise the successor keeps serving */
            notify_service_manager(m, "STOPPING=1");
        m->exit_code = exit_code;
    }
    mk_config_trial_stop(&m->attempt);
    mk_certificate_monitor_stop(&m->certificates);
    mk_timer_stop(&m->reload_timer);
    /* Close the sockets now, so that new connections are refused immediately, and not only after the last
     * download: a listen queue exists as long as any process has its socket open. Socket files of a successor
     * stay. */
    mk_listeners_close_all(&m->listeners, !m->upgrade.child);
    mk_workers_stop(&m->workers, NULL, signal, signal == SIGQUIT && m->upgrade.child);
    if (ending.kills_starting)
        mk_workers_kill_starting(&m->workers);
    if (ending.has_limit)
        mk_loop_set_timer(&m->loop, &m->kill_timer, KILL_AFTER_MS);
    run_due_steps(m);
}

static void fail_startup(struct master *m)
{
    begin_shutdown(m, SIGTERM, MK_EXIT_FAILED);
}

/* ---- Serving ---- */

static void announce_serving(struct master *m)
{
    if (m->o->on_serving)
        m->o->on_serving(m->generation, &m->listeners, m->o->ctx);
    fflush(stdout);
}

static void warn_of_discarded_messages(struct master *m)
{
    const struct mk_logfile *f = m->generation->error_log;
    if (m->o->daemon && f && f->kind == MK_LOGFILE_STREAM && !mk_daemon_keeps(f->fd))
        mk_log_warn(&m->log.log,
                    "running in the background: all further messages are discarded; set ErrorLog in "
                    "[SERVER], or redirect standard error to a file");
}

static void begin_serving(struct master *m)
{
    char state[64];
    mk_master_housekeeping_set_config(&m->housekeeping, m->generation);
    mk_certificate_monitor_set_config(&m->certificates, m->generation);
    mk_config_history_serves(m->history, m->generation);
    /* This call comes first, so that closing unwanted sockets of the predecessor also removes their files. */
    mk_listeners_own_socket_files(&m->listeners);
    mk_listeners_close_unwanted(&m->listeners, true);
    announce_serving(m);
    mk_log_info(&m->log.log, "monkey " MK_VERSION " serves with %u worker%s", m->workers.wanted,
                m->workers.wanted == 1 ? "" : "s");
    if (m->o->origin.path && geteuid() == 0 && !m->generation->has_identity)
        mk_log_warn(&m->log.log, "workers run as root: set User in [SERVER] to drop that privilege");
    /* A predecessor may have set another status. */
    snprintf(state, sizeof state, "READY=1\nMAINPID=%d\nSTATUS=Serving", (int)getpid());
    notify_service_manager(m, state);
    warn_of_discarded_messages(m);
    mk_upgrade_end_predecessor(&m->upgrade);
    mk_daemon_notify_parent(&m->ready_fd, MK_EXIT_OK);
    int null = mk_daemon_open_null();
    for (size_t i = 0; m->o->daemon && i < m->generation->logs.n; i++)
        mk_logfile_redirect_to_null(&m->generation->logs.at[i], null);
    mk_fd_close(&null);
}

/* Tells the service manager that a reload has ended, and how. A worker could have overwritten the error: only its
 * first line is sent, as one value. */
static void notify_reload_end(struct master *m)
{
    char state[320], error[256];
    const struct mk_reload_stats *stats = m->workers.scoreboard.reload_stats;
    size_t len = 0;
    while (len < sizeof error - 1 && (unsigned char)stats->why[len] >= ' ') {
        error[len] = stats->why[len];
        len++;
    }
    error[len] = '\0';
    bool failed = atomic_load(&stats->last_failed);
    snprintf(state, sizeof state, "READY=1\nSTATUS=%s%s", failed ? "The last reload failed: " : "Serving",
             failed                                              ? error
             : mk_config_history_awaits_confirmation(m->history) ? " a configuration that is not confirmed"
                                                                 : "");
    notify_service_manager(m, state);
}

static void finish_reload(struct master *m)
{
    char text[192];
    mk_timer_stop(&m->hand_over_timer);
    mk_config_generation_free(m->other);
    m->other = NULL;
    if (!m->upgrade.child) /* during an upgrade, the successor manages the pid file */
        mk_master_pid_file_change(&m->pid, &m->log.log, m->generation->server.pid_file);
    mk_config_history_describe(m->history, text, sizeof text);
    mk_log_info(&m->log.log, "%s", text);
    notify_reload_end(m);
}

static void set_log_level(struct master *m, int level);

/* A reload that an administrator has requested ends the log level of the shell; an automatic one does not. */
static void end_log_level(struct master *m)
{
    int level = m->plugin_log_level;
    m->plugin_log_level = -1;
    if (m->origin.is_repeated && level >= 0)
        set_log_level(m, level);
}

static void finish_orders(struct master *m, struct mk_reload_orders *orders, bool ok, const char *text)
{
    mk_scoreboard_finish_orders(orders, m->workers.scoreboard.reload_stats, ok, mk_str_from_c(text));
}

/* finish_reload() reports success later, when the old workers have stopped accepting. */
static void hand_over_to_new_workers(struct master *m)
{
    char text[192];
    struct mk_config_generation *old = m->generation;
    m->generation = m->other;
    m->other = old;
    mk_timer_stop(&m->reload_timer);
    mk_master_housekeeping_set_config(&m->housekeeping, m->generation);
    mk_certificate_monitor_set_config(&m->certificates, m->generation);
    end_log_level(m);
    mk_config_history_serves(m->history, m->generation);
    mk_scoreboard_reload_succeeded(
        m->workers.scoreboard.reload_stats); /* before the master stops the old workers */
    mk_config_history_describe(m->history, text, sizeof text);
    finish_orders(m, &m->orders, true, text);
    mk_listeners_close_unwanted(&m->listeners, true);
    mk_workers_stop(&m->workers, old, SIGQUIT, true);
    mk_loop_set_timer(&m->loop, &m->hand_over_timer, HAND_OVER_MS);
}

static void reopen_sockets(struct master *m);

static enum mk_log_level effective_log_level(const struct master *m, const struct mk_config_generation *g)
{
    return (enum mk_log_level)(m->plugin_log_level < 0 ? (int)g->server.log_level : m->plugin_log_level);
}

static void free_other_config(struct master *m)
{
    mk_config_generation_free(m->other);
    m->other = NULL;
    mk_listeners_close_new(&m->listeners);
    reopen_sockets(m);
    mk_listeners_close_unwanted(&m->listeners, true);
}

static void end_failed_reload(struct master *m)
{
    mk_timer_stop(&m->reload_timer);
    mk_config_history_failed(m->history);
    finish_orders(m, &m->orders, false, m->workers.scoreboard.reload_stats->why);
    notify_reload_end(m);
}

/* Ends a reload whose workers cannot serve, or were not started. */
static void abandon_reload(struct master *m, mk_str error)
{
    mk_workers_stop(&m->workers, m->other, SIGKILL, false);
    mk_errorlog_switch(&m->log, effective_log_level(m, m->generation), m->generation->error_log);
    free_other_config(m);
    mk_workers_return_to_config(&m->workers, m->generation);
    mk_scoreboard_reload_failed(m->workers.scoreboard.reload_stats, error);
    end_failed_reload(m);
}

/* Called when a worker of the new generation died before all workers served. */
static void fail_reload(struct master *m)
{
    abandon_reload(m, MK_STR("its workers cannot serve: see the error log"));
    mk_log_error(&m->log.log, "workers cannot serve the new configuration: keeping the old one");
}

/* Aborts a reload that takes so long that the new configuration may never serve. */
static void give_up_slow_reload(struct master *m)
{
    const mk_str error = m->life.again
                             ? MK_STR("the reload took too long, and was replaced by a later reload")
                             : MK_STR("the new workers do not serve in time: keeping the old configuration");
    mk_log_warn(&m->log.log, "%.*s", MK_STR_ARG(error));
    mk_config_trial_stop(&m->attempt);
    if (m->other && m->workers.generation == m->other) {
        abandon_reload(m, error);
        return;
    }
    if (m->other)
        free_other_config(m);
    mk_scoreboard_reload_failed(m->workers.scoreboard.reload_stats, error);
    end_failed_reload(m);
}

/* ---- Reloading ---- */

/* Opens the generation's addresses. Without any Listen, uses inherited sockets if available. */
static mk_err open_listeners_of_config(struct master *m, const struct mk_config_generation *g,
                                       const struct mk_listen **failed)
{
    struct mk_listen at[MK_LISTENERS_MAX];
    struct mk_listens inherited = {.at = at, .n = mk_listeners_list_managed(&m->listeners, at)};
    bool use_inherited = g->listens_by_default && inherited.n > 0;
    return mk_listeners_open(&m->listeners, use_inherited ? &inherited : &g->listens, g->server.workers,
                             failed);
}

static mk_err open_sockets(struct master *m, const struct mk_config_generation *g,
                           struct mk_conf_report *report)
{
    const struct mk_listen *failed = NULL;
    mk_err e = open_listeners_of_config(m, g, &failed);
    if (e && failed)
        mk_conf_report_error(report, &failed->at, "cannot listen on %.*s: %s", MK_STR_ARG(failed->written),
                             mk_err_text(e));
    if (e == -EADDRINUSE)
        mk_conf_report_hint(report, "another program listens there; choose another port (-p PORT)");
    if (e == -EACCES && failed && mk_sockaddr_port(&failed->addr) < 1024)
        mk_conf_report_hint(report, "ports below 1024 require root or CAP_NET_BIND_SERVICE");
    return e;
}

static void reopen_sockets(struct master *m)
{
    const struct mk_listen *failed = NULL;
    mk_err e = open_listeners_of_config(m, m->generation, &failed);
    if (e)
        mk_log_error(&m->log.log, "can no longer listen: %s", mk_err_text(e));
}

static void reject_config(struct master *m)
{
    if (m->other)
        free_other_config(m);
    mk_log_error(&m->log.log, "the new configuration is invalid: keeping the old one");
    end_failed_reload(m);
}

/* Called when all plugins have prepared, or a plugin has failed. */
static void on_plugins_prepared(struct mk_config_trial *a, bool ok)
{
    struct master *m = MK_CONTAINER(a, struct master, attempt);
    if (m->life.phase.current == MK_PHASE_PREPARING_FIRST)
        mk_report_output_print(&a->report);
    else
        mk_report_output_log(&m->log.log, m->workers.scoreboard.reload_stats, &a->report, ok);
    mk_lifecycle_plugins_prepared(&m->life, ok);
}

static void start_new_workers(struct master *m)
{
    mk_errorlog_switch(&m->log, (enum mk_log_level)m->other->server.log_level, m->other->error_log);
    mk_err e = mk_workers_start(&m->workers, m->other);
    if (e)
        mk_log_error(&m->log.log, "cannot start workers: %s", mk_err_text(e));
    mk_lifecycle_workers_started(&m->life, !e);
}

static void load_config(struct master *m)
{
    struct mk_arena arena;
    struct mk_conf_report report;
    struct mk_config_source origin = m->origin;
    mk_arena_init(&arena, NULL);
    origin.tried = m->is_tried;
    mk_config_history_begin_load(m->history, &origin);
    m->other = mk_config_generation_load(&origin, &arena, &report);
    mk_config_history_end_load(m->history, m->other);
    if (m->other && open_sockets(m, m->other, &report)) {
        mk_config_generation_free(m->other);
        m->other = NULL;
    }
    mk_report_output_log(&m->log.log, m->workers.scoreboard.reload_stats, &report, m->other);
    mk_arena_fini(&arena);
    mk_lifecycle_config_loaded(&m->life, m->other);
    if (m->other)
        mk_config_trial_prepare_plugins(&m->attempt, m->other);
}

/* Called when a trial process has loaded the configuration, or failed. Only after a success does the master
 * load it: a plugin that crashes or hangs while loading must not affect the running server. */
static void on_trial_done(struct mk_config_trial *a, int e, mk_str problems)
{
    struct master *m = MK_CONTAINER(a, struct master, attempt);
    m->is_tried = !e && !problems.len;
    if (!m->is_tried)
        mk_report_output_log_trial(&m->log.log, m->workers.scoreboard.reload_stats, m->origin.path, e,
                                   problems);
    mk_lifecycle_trial_done(&m->life, m->is_tried);
}

static void on_trial_idle(struct mk_config_trial *a)
{
    run_due_steps(MK_CONTAINER(a, struct master, attempt));
}

static void on_reload_timeout(struct mk_timer *t)
{
    struct master *m = MK_CONTAINER(t, struct master, reload_timer);
    mk_lifecycle_mark_reload_slow(&m->life);
    run_due_steps(m);
    if (m->life.slow)
        mk_loop_set_timer(&m->loop, t, SLOW_MS);
}

static void start_reload_trial(struct master *m)
{
    char state[96];
    snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, mk_clock_us());
    notify_service_manager(m, state);
    mk_scoreboard_reload_begin(m->workers.scoreboard.reload_stats);
    if (m->o->periodic_work)
        m->o->periodic_work(&m->log.log, m->o->ctx);
    m->origin.previous = m->generation;
    m->orders = m->next_orders;
    m->next_orders.n = 0;
    if (!mk_config_history_begin(m->history, &m->origin))
        finish_orders(m, &m->orders, false,
                      "the configuration was confirmed, or another rollback has succeeded");
    mk_loop_set_timer(&m->loop, &m->reload_timer, SLOW_MS);
    m->is_tried = false;
    if (mk_config_trial_start(&m->attempt)) /* cannot start a trial process: load the configuration without a
                                             * trial */
        mk_lifecycle_trial_done(&m->life, true);
}

static void reject_order(struct master *m, const struct mk_reload_order *order, const char *error)
{
    struct mk_reload_orders rejected = {.n = 0};
    mk_log_error(&m->log.log, "cannot reload: %s", error);
    mk_scoreboard_reload_failed(m->workers.scoreboard.reload_stats, mk_str_from_c(error));
    mk_scoreboard_add_order(&rejected, order->id);
    finish_orders(m, &rejected, false, error);
}

static void request_reload(struct master *m, const struct mk_reload_order *order)
{
    const char *error;
    enum mk_reload_verdict verdict = mk_config_history_order(m->history, order, &error);
    if (verdict == MK_RELOAD_REPLACES)
        finish_orders(m, &m->next_orders, false, "a later order has replaced this one");
    if (verdict == MK_RELOAD_REJECTED)
        reject_order(m, order, error);
    else if (!mk_scoreboard_add_order(verdict == MK_RELOAD_UNDER_WAY ? &m->orders : &m->next_orders,
                                      order->id))
        reject_order(m, order, "too many orders wait for the next reload");
    else if (verdict != MK_RELOAD_UNDER_WAY)
        mk_lifecycle_request_reload(&m->life);
    run_due_steps(m);
}

static void request_automatic_reload(struct master *m, const char *by)
{
    struct mk_reload_order order = {.automatic = true};
    snprintf(order.by, sizeof order.by, "%s", by);
    request_reload(m, &order);
}

/* Called when the time for the confirmation of a configuration has ended. */
static void on_confirm_timeout(void *ctx)
{
    struct master *m = ctx;
    if (m->life.phase.current == MK_PHASE_ENDING)
        return;
    mk_lifecycle_request_reload(&m->life);
    run_due_steps(m);
}

static struct mk_reload_stats *reload_stats(void *ctx)
{
    const struct master *m = ctx;
    return m->workers.scoreboard.reload_stats;
}

static void on_files_changed(struct mk_master_housekeeping *u)
{
    struct master *m = MK_CONTAINER(u, struct master, housekeeping);
    if (m->life.phase.current == MK_PHASE_ENDING)
        return;
    mk_log_info(&m->log.log, "watched files have changed: reloading the configuration");
    request_automatic_reload(m, "watched files");
}

/* ---- Steps ---- */

static void start_first_workers(struct master *m)
{
    mk_err e = mk_workers_start(&m->workers, m->generation);
    if (e)
        mk_report_output_print_error("cannot start: %s", mk_err_text(e));
    mk_lifecycle_workers_started(&m->life, !e);
}

static void stop_loop(struct master *m)
{
    mk_loop_stop(&m->loop);
}

static struct mk_lifecycle_workers count_workers(const struct master *m)
{
    const struct mk_workers *w = &m->workers;
    return (struct mk_lifecycle_workers){
        .wanted = w->wanted,
        .there = mk_workers_count(w, w->generation, false),
        .ready = mk_workers_count(w, w->generation, true),
        .old_wanted = m->generation->server.workers,
        .old_there = mk_workers_count(w, m->generation, false),
        .all = mk_workers_count_all(w),
        .accept_still = m->other && mk_workers_may_still_accept(w, m->other),
    };
}

typedef void run_step(struct master *m);

/* Executes all steps that are due. */
static void run_due_steps(struct master *m)
{
    static run_step *const steps[] = {
        [MK_STEP_START_FIRST] = start_first_workers,
        [MK_STEP_SERVE] = begin_serving,
        [MK_STEP_FAIL] = fail_startup,
        [MK_STEP_START_TRIAL] = start_reload_trial,
        [MK_STEP_LOAD] = load_config,
        [MK_STEP_START_NEW] = start_new_workers,
        [MK_STEP_REJECT] = reject_config,
        [MK_STEP_ABANDON] = fail_reload,
        [MK_STEP_GIVE_UP_RELOAD] = give_up_slow_reload,
        [MK_STEP_HAND_OVER] = hand_over_to_new_workers,
        [MK_STEP_FINISH] = finish_reload,
        [MK_STEP_STOP] = stop_loop,
    };
    enum mk_lifecycle_step step = MK_STEP_START_FIRST;
    if (m->advances)
        return;
    m->advances = true;
    while (step != MK_STEP_WAIT && step != MK_STEP_STOP) {
        const struct mk_lifecycle_workers w = count_workers(m);
        step = mk_lifecycle_next_step(&m->life, &w);
        if (step != MK_STEP_WAIT)
            steps[step](m);
    }
    m->advances = false;
}

static void on_workers_changed(struct mk_workers *w)
{
    struct master *m = MK_CONTAINER(w, struct master, workers);
    if (w->early_death)
        mk_lifecycle_worker_died_early(&m->life);
    w->early_death = false;
    run_due_steps(m);
}

static void on_hand_over_timeout(struct mk_timer *t)
{
    struct master *m = MK_CONTAINER(t, struct master, hand_over_timer);
    if (m->life.phase.current != MK_PHASE_HANDING_OVER)
        return;
    mk_log_warn(
        &m->log.log,
        "old workers have not confirmed that they stopped accepting: they may still accept connections");
    mk_lifecycle_old_workers_late(&m->life);
    run_due_steps(m);
}

/* ---- Logs ---- */

static void reopen_logs(struct master *m)
{
    mk_log_rotation_reopen(&m->workers, m->generation);
    if (m->other)
        mk_log_rotation_reopen(&m->workers, m->other);
    mk_log_info(&m->log.log, "reopened the logs");
}

/* ---- Requests of workers ---- */

/* Sets the log level until the next successful reload that an administrator requests. */
static void set_log_level(struct master *m, int level)
{
    if (level < 0 || level >= MK_LOG_LEVEL_COUNT)
        return;
    m->plugin_log_level = level;
    m->log.log.level = (enum mk_log_level)level;
    mk_workers_broadcast(
        &m->workers, &(struct mk_control_message){.kind = MK_CONTROL_LOG_LEVEL, .number = level, .fd = -1});
    mk_log_info(&m->log.log, "the log level is now %s", mk_log_level_names[level]);
}

static void confirm(struct master *m, uint64_t id, const char *by)
{
    bool ok = mk_config_history_confirm(m->history, mk_str_from_c(by));
    mk_scoreboard_publish_result(m->workers.scoreboard.reload_stats, id, ok,
                                 ok ? MK_STR("the configuration is confirmed")
                                    : MK_STR("no configuration waits for its confirmation"));
    if (ok)
        notify_service_manager(m, "STATUS=Serving");
}

/* An administrator has sent the order to a worker. Returns false if the message is no such order. */
static bool obey_config_order(struct master *m, const struct mk_control_message *ask)
{
    struct mk_reload_order order = {.is_rollback = ask->kind == MK_CONTROL_ROLLBACK, .id = ask->id};
    struct mk_buf by = mk_buf_fixed(order.by, sizeof order.by - 1);
    mk_log_escape(&by, mk_str_first(ask->text, sizeof order.by / 2));
    unsigned number = ask->number > 0 ? (unsigned)ask->number : 0;
    if (ask->kind == MK_CONTROL_CONFIRM) {
        confirm(m, ask->id, order.by);
        return true;
    }
    if (ask->kind != MK_CONTROL_RELOAD_BY && ask->kind != MK_CONTROL_ROLLBACK)
        return false;
    if (order.is_rollback)
        order.number = number;
    else
        order.confirm_s = number < CONFIRM_MAX_S ? number : CONFIRM_MAX_S;
    mk_log_info(&m->log.log, "%s requests %s", order.by, order.is_rollback ? "a rollback" : "a reload");
    request_reload(m, &order);
    return true;
}

static void on_worker_request(struct mk_workers *w, const struct mk_control_message *ask)
{
    struct master *m = MK_CONTAINER(w, struct master, workers);
    struct mk_config_generation *const generations[] = {m->generation, m->other};
    if (m->life.phase.current == MK_PHASE_ENDING)
        return;
    if (ask->kind == MK_CONTROL_RELOAD) {
        mk_log_info(&m->log.log, "a plugin requests a reload: reloading the configuration");
        request_automatic_reload(m, "a plugin");
    } else if (ask->kind == MK_CONTROL_LOG_LEVEL) {
        set_log_level(m, ask->number);
    } else if (ask->kind == MK_CONTROL_ROTATE) {
        mk_log_rotation_rotate_if_full(w, generations, MK_LEN(generations), ask->text);
    } else {
        (void)obey_config_order(m, ask);
    }
}

/* ---- Signals ---- */

static void start_upgrade(struct master *m)
{
    const char *error;
    if (!mk_config_history_may_upgrade(m->history, &error)) {
        mk_log_warn(&m->log.log, "cannot start a new program %s", error);
        return;
    }
    if (!mk_lifecycle_may_upgrade(&m->life) || m->upgrade.child) {
        mk_log_warn(&m->log.log, "cannot start a new program: another operation is in progress");
        return;
    }
    mk_master_pid_file_release(&m->pid); /* the successor writes its own pid file */
    mk_err e = mk_upgrade_start(&m->upgrade, &m->shared, &m->listeners, m->o->argv);
    if (e) {
        mk_log_error(&m->log.log, "cannot start the new program: %s", mk_err_text(e));
        mk_master_pid_file_reacquire(&m->pid);
    } else {
        mk_log_info(&m->log.log, "the new program is process %d", (int)m->upgrade.child);
    }
}

static void on_other_child_exit(struct mk_workers *w, pid_t pid, int status)
{
    struct master *m = MK_CONTAINER(w, struct master, workers);
    mk_config_trial_reap(&m->attempt, pid, status);
    mk_certificate_monitor_reap(&m->certificates, pid);
}

static void on_child_exit(struct master *m)
{
    if (mk_upgrade_successor_died(&m->upgrade)) {
        mk_log_error(&m->log.log, "the new program exited before it was ready: keeping the old one");
        mk_master_pid_file_reacquire(&m->pid);
    }
    mk_workers_reap(&m->workers);
}

static void reload_for_signal(struct master *m, const struct signalfd_siginfo *info)
{
    struct mk_reload_order order = {0};
    snprintf(order.by, sizeof order.by, "SIGHUP by process %u of user %u", info->ssi_pid, info->ssi_uid);
    request_reload(m, &order);
}

static void handle_signal(struct master *m, const struct signalfd_siginfo *info)
{
    switch ((int)info->ssi_signo) {
    case SIGHUP:
        reload_for_signal(m, info);
        break;
    case SIGUSR1:
        reopen_logs(m);
        break;
    case SIGUSR2:
        start_upgrade(m);
        break;
    case SIGCHLD:
        on_child_exit(m);
        break;
    case SIGQUIT:
        mk_upgrade_on_quit(&m->upgrade, (pid_t)info->ssi_pid);
        begin_shutdown(m, SIGQUIT, MK_EXIT_OK);
        break;
    default:
        begin_shutdown(m, SIGTERM, MK_EXIT_OK);
        break;
    }
}

static void on_signal(struct mk_fd_watch *w, uint32_t events)
{
    struct master *m = MK_CONTAINER(w, struct master, signals);
    struct signalfd_siginfo info;
    (void)events;
    while (read(m->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
        handle_signal(m, &info);
}

/* Runs in each new worker. Closes the pid file: a worker that could write to it could choose which process
 * the administrator kills. */
static void on_worker_forked(struct mk_workers *w)
{
    struct master *m = MK_CONTAINER(w, struct master, workers);
    struct mk_config_generation *other = w->generation == m->other ? m->generation : m->other;
    mk_fd_close(&m->pid.fd);
    mk_fd_close(&m->attempt.problems_fd);
    mk_fd_close(&m->signal_fd);
    mk_fd_close(&m->ready_fd);
    if (other && other != w->generation)
        mk_config_generation_free(other);
}

/* ---- Lifetime ---- */

static mk_err init_loop(struct master *m)
{
    mk_err e = mk_loop_init(&m->loop);
    if (e)
        return e;
    m->signal_fd = mk_signals_open_fd();
    m->signals.on_ready = on_signal;
    mk_timer_init(&m->kill_timer, on_kill_timeout);
    mk_timer_init(&m->hand_over_timer, on_hand_over_timeout);
    mk_timer_init(&m->reload_timer, on_reload_timeout);
    mk_config_history_start(m->history, &m->loop, &m->log.log);
    mk_config_trial_init(&m->attempt, &m->loop, &m->origin);
    m->attempt.on_trial_done = on_trial_done;
    m->attempt.on_plugins_prepared = on_plugins_prepared;
    m->attempt.on_over = on_trial_idle;
    mk_master_housekeeping_init(&m->housekeeping, &m->loop, &m->log.log, on_files_changed);
    mk_certificate_monitor_init(&m->certificates, &m->loop, &m->log.log);
    if (m->o->periodic_work)
        mk_master_housekeeping_add_work(&m->housekeeping, m->o->periodic_work, m->o->ctx);
    if (m->signal_fd < 0)
        return m->signal_fd;
    e = mk_loop_add(&m->loop, m->signal_fd, &m->signals, EPOLLIN);
    if (!e)
        e = mk_workers_init(&m->workers, &m->loop, &m->log, &m->listeners);
    mk_watchdog_start(&m->watchdog, &m->workers);
    m->workers.silent = m->o->daemon;
    m->workers.on_change = on_workers_changed;
    m->workers.on_other_child = on_other_child_exit;
    m->workers.on_child = on_worker_forked;
    m->workers.on_worker_request = on_worker_request;
    return e;
}

/* Warns of a service manager's socket that no Listen uses: connections to it are never answered. */
static void warn_of_unwanted_sockets(const struct master *m, struct mk_conf_report *report)
{
    const struct mk_conf_source_pos at = {.file = MK_STR("LISTEN_FDS")};
    for (unsigned i = 0; m->generation && i < m->listeners.n; i++) {
        char buf[MK_SOCKADDR_TEXT_MAX];
        struct mk_buf addr = mk_buf_fixed(buf, sizeof buf);
        mk_sockaddr_format(&m->listeners.at[i].addr, &addr);
        if (m->listeners.at[i].managed && !m->listeners.at[i].wanted)
            mk_conf_report_warn(report, &at,
                                "no Listen uses the inherited socket %.*s: no worker accepts its connections",
                                MK_STR_ARG(mk_buf_str(&addr)));
    }
}

static int load_and_listen(struct master *m)
{
    struct mk_arena arena;
    struct mk_conf_report report;
    mk_arena_init(&arena, NULL);
    struct mk_config_source origin = m->origin;
    mk_config_history_begin_load(m->history, &origin);
    m->generation = mk_config_generation_load(&origin, &arena, &report);
    mk_config_history_end_load(m->history, m->generation);
    int code = m->generation                           ? MK_EXIT_OK
               : mk_conf_report_out_of_memory(&report) ? MK_EXIT_FAILED
                                                       : MK_EXIT_CONFIGURATION;
    mk_listeners_inherit(&m->listeners, NULL);
    if (m->generation && open_sockets(m, m->generation, &report))
        code = MK_EXIT_FAILED;
    warn_of_unwanted_sockets(m, &report);
    mk_report_output_print(&report);
    mk_arena_fini(&arena);
    return code;
}

static int start_master(struct master *m)
{
    int code = load_and_listen(m);
    if (code)
        return code;
    if (m->o->daemon && !m->upgrade.predecessor) {
        mk_err e = mk_daemon_start(&m->ready_fd);
        if (e) {
            mk_report_output_print_error("cannot run in the background: %s", mk_err_text(e));
            return MK_EXIT_FAILED;
        }
    }
    if (mk_errorlog_init(&m->log, (enum mk_log_level)m->generation->server.log_level,
                         m->generation->error_log)) {
        mk_report_output_print_error("out of memory");
        return MK_EXIT_FAILED;
    }
    mk_signals_block(); /* a script may send a signal as soon as the pid file exists */
    const char *problem = mk_master_pid_file_acquire(&m->pid, m->generation->server.pid_file);
    if (problem) {
        mk_report_output_print_error("cannot lock the pid file %.*s: %s",
                                     MK_STR_ARG(m->generation->server.pid_file), problem);
        return MK_EXIT_FAILED;
    }
    mk_err e = init_loop(m);
    if (!e)
        mk_config_trial_prepare_plugins(&m->attempt, m->generation);
    if (e)
        mk_report_output_print_error("cannot start: %s", mk_err_text(e));
    return e ? MK_EXIT_FAILED : MK_EXIT_OK;
}

static void free_master(struct master *m)
{
    mk_listeners_close_all(&m->listeners, !m->upgrade.child); /* socket files of a successor stay */
    mk_master_pid_file_release(&m->pid);
    if (m->workers.loop)
        mk_workers_fini(&m->workers);
    mk_errorlog_fini(&m->log); /* before the log file is closed */
    if (m->other)
        mk_config_generation_free(m->other);
    if (m->generation)
        mk_config_generation_free(m->generation);
    mk_config_history_free(m->history);
    mk_shared_state_fini(&m->shared);
    mk_fd_close(&m->signal_fd);
    if (m->loop.epoll_fd > 0)
        mk_loop_fini(&m->loop);
}

int mk_master_run(const struct mk_master_options *o)
{
    struct master *m = mk_mem_zalloc(1, sizeof *m);
    if (!m) {
        mk_report_output_print_error("out of memory");
        return MK_EXIT_FAILED;
    }
    m->o = o;
    m->ready_fd = m->signal_fd = m->plugin_log_level = -1;
    m->origin = o->origin;
    m->origin.shared = &m->shared;
    m->history = mk_config_history_new(&o->origin, reload_stats, on_confirm_timeout, m);
    tzset(); /* workers inherit the time zone, because their sandbox may prevent them from reading its file */
    mk_master_pid_file_init(&m->pid);
    mk_upgrade_init(&m->upgrade, &m->shared);
    int code = start_master(m);
    if (!code) {
        mk_err e = mk_loop_run(&m->loop);
        code = e ? MK_EXIT_FAILED : m->exit_code;
    }
    free_master(m);
    mk_daemon_notify_parent(&m->ready_fd, code);
    mk_master_pid_file_fini(&m->pid);
    mk_mem_free(m);
    return code;
}
