/* SPDX-License-Identifier: Apache-2.0 */
#include "server/config_trial.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/crash_probe.h"
#include "os/fd.h"
#include "server/report_output.h"
#include "setup/plugins.h"
#include "setup/shared_state.h"

enum { TRIAL_S = 60, SPARE_MS = 1000, PROBLEMS_MAX = 256 * 1024 };

static void set_timer(struct mk_config_trial *a, struct mk_timer *t, uint32_t after_ms)
{
    mk_loop_set_timer(a->loop, t, after_ms);
}

/* ---- The trial ---- */

static void write_trial_report(const struct mk_config_trial *a, const struct mk_conf_report *report)
{
    struct mk_buf text = mk_buf_growing(PROBLEMS_MAX);
    mk_report_output_encode(report, &text);
    mk_str problems = text.len ? mk_buf_str(&text) : MK_STR("Eout of memory\n");
    (void)!write(a->problems_fd, problems.p, problems.len);
    mk_buf_free(&text);
}

/* Runs in its own process group, so that kill_trial() also kills subprocesses. */
static void run_trial(void *ctx)
{
    const struct mk_config_trial *a = ctx;
    struct mk_arena arena;
    struct mk_conf_report report;
    (void)setpgid(0, 0);
    mk_arena_init(&arena, NULL);
    mk_conf_report_init(&report, &arena);
    if ((a->origin->shared && !mk_shared_state_detach_statistics(a->origin->shared)) ||
        !mk_config_generation_load(a->origin, &arena, &report))
        write_trial_report(a, &report);
}

mk_err mk_config_trial_start(struct mk_config_trial *a)
{
    a->problems_fd = memfd_create("monkey-trial", MFD_CLOEXEC);
    if (a->problems_fd < 0)
        return mk_err_last();
    pid_t pid = mk_crash_probe_start(run_trial, a, TRIAL_S);
    if (pid < 0) {
        mk_fd_close(&a->problems_fd);
        return (mk_err)pid;
    }
    (void)setpgid(pid, pid);
    a->pid = pid;
    a->is_late = false;
    set_timer(a, &a->trial_timer, TRIAL_S * 1000 + SPARE_MS);
    return 0;
}

/* Kills the trial process and its subprocesses. */
static void kill_trial(const struct mk_config_trial *a)
{
    (void)kill(-a->pid, SIGKILL);
}

static void finish_trial(struct mk_config_trial *a, int e)
{
    struct mk_buf problems = mk_buf_growing(PROBLEMS_MAX);
    char buf[4096];
    ssize_t n;
    for (off_t at = 0; (n = pread(a->problems_fd, buf, sizeof buf, at)) > 0; at += n)
        mk_buf_add(&problems, mk_str_of(buf, (size_t)n));
    mk_fd_close(&a->problems_fd);
    a->on_trial_done(a, e, mk_buf_str(&problems));
    mk_buf_free(&problems);
    a->on_over(a);
}

void mk_config_trial_reap(struct mk_config_trial *a, pid_t pid, int status)
{
    if (pid != a->pid)
        return;
    kill_trial(a);
    a->pid = 0;
    mk_timer_stop(&a->trial_timer);
    finish_trial(a, a->is_late ? SIGALRM : mk_crash_probe_result(status));
}

/* The trial process sets an alarm for itself, but plugin code may block SIGALRM. */
static void on_trial_timeout(struct mk_timer *t)
{
    struct mk_config_trial *a = MK_CONTAINER(t, struct mk_config_trial, trial_timer);
    a->is_late = true;
    kill_trial(a);
}

/* ---- Preparing ---- */

static void release_generation(struct mk_config_trial *a)
{
    mk_timer_stop(&a->prepare_timer);
    if (!a->generation)
        return;
    mk_loop_remove(a->loop, a->generation->ready_fd);
    mk_fd_close(&a->generation->ready_fd);
    mk_arena_fini(&a->arena);
    a->generation = NULL;
}

static void finish_preparing(struct mk_config_trial *a, bool ok)
{
    a->on_plugins_prepared(a, ok);
    release_generation(a);
    a->on_over(a);
}

static void check_plugins_ready(struct mk_config_trial *a)
{
    mk_err e = mk_plugins_check_ready(a->generation, &a->report);
    if (e == -EAGAIN)
        set_timer(a, &a->prepare_timer, mk_plugins_ready_timeout_ms(a->generation));
    else
        finish_preparing(a, !e);
}

static void on_prepare_timeout(struct mk_timer *t)
{
    check_plugins_ready(MK_CONTAINER(t, struct mk_config_trial, prepare_timer));
}

static void on_plugin_event(struct mk_fd_watch *w, uint32_t events)
{
    struct mk_config_trial *a = MK_CONTAINER(w, struct mk_config_trial, prepare_watch);
    (void)events;
    if (a->generation)
        check_plugins_ready(a);
}

void mk_config_trial_prepare_plugins(struct mk_config_trial *a, struct mk_config_generation *g)
{
    a->generation = g;
    mk_arena_init(&a->arena, NULL);
    mk_conf_report_init(&a->report, &a->arena);
    if (mk_plugins_start_in_master(g, &a->report) &&
        (g->ready_fd < 0 || !mk_loop_add(a->loop, g->ready_fd, &a->prepare_watch, EPOLLIN)))
        check_plugins_ready(a);
    else
        finish_preparing(a, false);
}

/* ---- Lifetime ---- */

void mk_config_trial_init(struct mk_config_trial *a, struct mk_loop *loop,
                          const struct mk_config_source *origin)
{
    *a = (struct mk_config_trial){
        .loop = loop, .origin = origin, .problems_fd = -1, .prepare_watch = {.on_ready = on_plugin_event}};
    mk_timer_init(&a->trial_timer, on_trial_timeout);
    mk_timer_init(&a->prepare_timer, on_prepare_timeout);
}

void mk_config_trial_stop(struct mk_config_trial *a)
{
    if (a->pid) {
        kill_trial(a);
        a->pid = 0; /* mk_workers_reap() reaps the process */
        mk_timer_stop(&a->trial_timer);
        mk_fd_close(&a->problems_fd);
    }
    release_generation(a);
}
