/* SPDX-License-Identifier: Apache-2.0 */
#include "server/attempt.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/crash_probe.h"
#include "os/fd.h"
#include "server/reports.h"
#include "settings/shared.h"
#include "setup/plugins.h"

enum { TRIAL_S = 60, SPARE_MS = 1000, ASK_MS = 32, SAID_MAX = 256 * 1024 };

static void set(struct mk_attempt *a, struct mk_timer *t, uint32_t after_ms)
{
    mk_loop_set_timer(a->loop, t, after_ms);
}

/* ---- The trial ---- */

static void say(const struct mk_attempt *a, const struct mk_conf_report *report)
{
    struct mk_buf text = mk_buf_growing(SAID_MAX);
    mk_reports_write(report, &text);
    mk_str said = text.len ? mk_buf_str(&text) : MK_STR("Eout of memory\n");
    (void)!write(a->said_fd, said.p, said.len);
    mk_buf_free(&text);
}

/* In a process group of its own, which ends as a whole. */
static void try_out(void *ctx)
{
    const struct mk_attempt *a = ctx;
    struct mk_arena arena;
    struct mk_conf_report report;
    (void)setpgid(0, 0);
    mk_arena_init(&arena, NULL);
    mk_conf_report_init(&report, &arena);
    if ((a->origin->shared && !mk_shared_part_statistics(a->origin->shared)) ||
        !mk_generation_load(a->origin, &arena, &report))
        say(a, &report);
}

mk_err mk_attempt_try(struct mk_attempt *a)
{
    a->said_fd = memfd_create("monkey-trial", MFD_CLOEXEC);
    if (a->said_fd < 0)
        return mk_err_last();
    pid_t pid = mk_crash_probe_start(try_out, a, TRIAL_S);
    if (pid < 0) {
        mk_fd_close(&a->said_fd);
        return (mk_err)pid;
    }
    (void)setpgid(pid, pid);
    a->pid = pid;
    a->is_late = false;
    set(a, &a->trial_timer, TRIAL_S * 1000 + SPARE_MS);
    return 0;
}

/* With what it has started. */
static void kill_trial(const struct mk_attempt *a)
{
    (void)kill(-a->pid, SIGKILL);
}

static void end_trial(struct mk_attempt *a, int e)
{
    struct mk_buf said = mk_buf_growing(SAID_MAX);
    char room[4096];
    ssize_t n;
    for (off_t at = 0; (n = pread(a->said_fd, room, sizeof room, at)) > 0; at += n)
        mk_buf_add(&said, mk_str_of(room, (size_t)n));
    mk_fd_close(&a->said_fd);
    a->on_tried(a, e, mk_buf_str(&said));
    mk_buf_free(&said);
    a->on_over(a);
}

void mk_attempt_bury(struct mk_attempt *a, pid_t pid, int status)
{
    if (pid != a->pid)
        return;
    kill_trial(a);
    a->pid = 0;
    mk_timer_stop(&a->trial_timer);
    end_trial(a, a->is_late ? SIGALRM : mk_crash_probe_result(status));
}

/* It has an alarm of its own, but may ignore that. */
static void on_trial_time(struct mk_timer *t)
{
    struct mk_attempt *a = MK_CONTAINER(t, struct mk_attempt, trial_timer);
    a->is_late = true;
    kill_trial(a);
}

/* ---- Preparing ---- */

static void release(struct mk_attempt *a)
{
    mk_timer_stop(&a->prepare_timer);
    if (a->generation)
        mk_arena_fini(&a->arena);
    a->generation = NULL;
}

static void end_preparing(struct mk_attempt *a, bool ok)
{
    a->on_prepared(a, ok);
    release(a);
    a->on_over(a);
}

static void ask(struct mk_attempt *a)
{
    mk_err e = mk_plugins_await(a->generation, &a->report);
    if (e == -EAGAIN)
        set(a, &a->prepare_timer, ASK_MS);
    else
        end_preparing(a, !e);
}

static void on_ask_time(struct mk_timer *t)
{
    ask(MK_CONTAINER(t, struct mk_attempt, prepare_timer));
}

void mk_attempt_prepare(struct mk_attempt *a, struct mk_generation *g)
{
    a->generation = g;
    mk_arena_init(&a->arena, NULL);
    mk_conf_report_init(&a->report, &a->arena);
    if (mk_plugins_prepare(g, &a->report))
        ask(a);
    else
        end_preparing(a, false);
}

/* ---- Life ---- */

void mk_attempt_init(struct mk_attempt *a, struct mk_loop *loop, const struct mk_origin *origin)
{
    *a = (struct mk_attempt){.loop = loop, .origin = origin, .said_fd = -1};
    mk_timer_init(&a->trial_timer, on_trial_time);
    mk_timer_init(&a->prepare_timer, on_ask_time);
}

void mk_attempt_stop(struct mk_attempt *a)
{
    if (a->pid) {
        kill_trial(a);
        a->pid = 0; /* others reap it */
        mk_timer_stop(&a->trial_timer);
        mk_fd_close(&a->said_fd);
    }
    release(a);
}
