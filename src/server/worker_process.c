/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/daemon.h"
#include "os/fd.h"
#include "os/identity.h"
#include "os/proc.h"
#include "os/sandbox.h"
#include "os/spool.h"
#include "server/signals.h"
#include "server/worker_sandbox.h"
#include "setup/program_rules.h"
#include "worker/control.h"
#include "worker/subprocess.h"
#include "worker/worker_async.h"
#include "worker/worker_messages.h"

enum { MESSAGES_MAX = 64 /* per iteration */, READY_MS = 5000 };

struct worker_process {
    struct mk_worker worker;
    struct mk_fd_watch signals, control;
    struct mk_listeners *listeners;
    int signal_fd, control_fd;
    struct mk_log *log;
    struct mk_spawner spawner;
    bool has_spawner;
};

/* ---- Sandbox and privileges ---- */

static bool allows_program(const void *ctx, char *const *argv, char *const *envp)
{
    const struct mk_worker_process_options *o = ctx;
    return o->generation->program_rules->allow(o->generation, o->index, argv, envp);
}

/* Programs that the spawner starts run as the worker's user. Of the worker's sandbox, only the restriction on
 * sending signals applies to them. */
static mk_err start_spawner(struct worker_process *p, const struct mk_worker_process_options *o)
{
    const struct mk_config_generation *g = o->generation;
    const struct mk_spawner_policy policy = {
        .allows = allows_program, .ctx = o, .is_confined = g->server.sandbox};
    if (!g->program_rules || !g->program_rules->need_spawner(g, o->index))
        return 0;
    mk_err e = mk_spawner_start(&p->spawner, &policy);
    if (e)
        mk_log_error(p->log, "cannot start the spawner: %s", mk_err_text(e));
    p->has_spawner = !e;
    return e;
}

/* Checks the spool folder again: the master can write to it, but the worker's user may lack permission. */
static void check_spool_folder(const struct mk_config_generation *g, struct mk_log *log)
{
    int fd = g->wants_spool ? mk_spool_open_tmpfile(g->server.spool_folder.p) : -1;
    if (g->wants_spool && fd < 0)
        mk_log_error(
            log, "workers cannot spool request bodies in SpoolFolder %s: %s; bodies above 64 KB will fail",
            g->server.spool_folder.p, mk_err_text(fd));
    mk_fd_close(&fd);
}

static mk_err drop_privileges(struct worker_process *p, const struct mk_worker_process_options *o)
{
    const struct mk_config_generation *g = o->generation;
    struct mk_log *log = p->log;
    uint64_t fds;
    mk_err e = mk_fd_set_limit(g->server.fd_limit, &fds);
    if (e)
        mk_log_warn(log, "FDLimit %llu: %s; it stays at %llu", (unsigned long long)g->server.fd_limit,
                    mk_err_text(e), (unsigned long long)fds);
    mk_worker_sandbox_prepare(g);
    if (g->has_identity && (e = mk_identity_become(&g->identity))) {
        mk_log_error(log, "cannot switch to the user %s: %s", g->identity.user, mk_err_text(e));
        return e;
    }
    e = mk_sandbox_drop_privileges();
    if (e || (e = start_spawner(p, o)))
        return e;
    e = mk_worker_sandbox_enter(g, log);
    if (!e)
        check_spool_folder(g, log);
    return e;
}

/* ---- Signals and messages ---- */

/* Closes the listening sockets: an open socket would keep its listen queue alive without a process that
 * accepts from it. */
static void start_draining(struct worker_process *p, bool has_successor)
{
    mk_worker_drain(&p->worker, has_successor, p->worker.generation->server.drain_ms);
    mk_listeners_close_all(p->listeners, false);
    if (p->control_fd >= 0) /* if this message is lost, the master stops waiting after a timeout */
        (void)!mk_control_send_kind(p->control_fd, MK_CONTROL_DRAINS);
}

/* Drains the worker, because only a new worker gets a new spawner. */
static void on_spawner_lost(struct mk_subprocesses *c)
{
    start_draining(MK_CONTAINER(c, struct worker_process, worker.children), true);
}

static void on_signal(struct mk_fd_watch *w, uint32_t events)
{
    struct worker_process *p = MK_CONTAINER(w, struct worker_process, signals);
    struct signalfd_siginfo info;
    (void)events;
    while (read(p->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGQUIT)
            start_draining(p, false);
        else if (info.ssi_signo == SIGTERM)
            mk_worker_stop(&p->worker);
        else if (info.ssi_signo == SIGCHLD)
            mk_subprocesses_reap_spawner(&p->worker.children);
        /* Other signals are for the master; a terminal sends SIGINT to all processes, and the master handles
         * it. */
    }
}

static void replace_log_fd(struct worker_process *p, const struct mk_control_message *m)
{
    const struct mk_config_generation *g = p->worker.generation;
    for (size_t i = 0; i < g->logs.n; i++) {
        if (!mk_str_eq(g->logs.at[i].where, m->text) || g->logs.at[i].fd < 0)
            continue;
        mk_err e = mk_logwriter_replace_fd(&p->worker.logs[i], m->fd);
        if (e)
            mk_log_error(p->log, "cannot replace the log %.*s: %s", MK_STR_ARG(m->text), mk_err_text(e));
        p->worker.logs[i].rotation_requested_ms = 0;
    }
}

static void handle_master_message(struct worker_process *p, const struct mk_control_message *m)
{
    if (m->kind == MK_CONTROL_DRAIN_FOR_SUCCESSOR)
        start_draining(p, true);
    else if (m->kind == MK_CONTROL_LOG && m->fd >= 0)
        replace_log_fd(p, m);
    else if (m->kind == MK_CONTROL_LOG_LEVEL)
        p->log->level = (enum mk_log_level)m->number;
    else if (m->kind == MK_CONTROL_REPLACED)
        mk_worker_messages_stop_receiving(&p->worker);
    else if (m->kind == MK_CONTROL_EXIT)
        mk_worker_notify_exit(&p->worker);
}

static void on_master_message(struct mk_fd_watch *w, uint32_t events)
{
    struct worker_process *p = MK_CONTAINER(w, struct worker_process, control);
    struct mk_control_buffer buf;
    struct mk_control_message m;
    mk_err e = 0;
    (void)events;
    /* Leaves further messages for the next iteration, because connections may be waiting. */
    for (int i = 0; i < MESSAGES_MAX && (e == 0 || e == -EBADMSG); i++) {
        e = mk_control_receive(p->control_fd, &buf, &m);
        if (e)
            continue;
        handle_master_message(p, &m);
        mk_fd_close(&m.fd);
    }
    if (e == -EPIPE) { /* the master died; no other worker will take over */
        mk_loop_remove(&p->worker.loop, p->control_fd);
        p->worker.master_fd = -1;
        start_draining(p, false);
    }
}

/* Tells the master that the worker is ready. If requests that plugins sent at startup have filled the
 * channel, waits up to READY_MS until the master has read some of them. */
static mk_err send_ready(int control_fd)
{
    struct pollfd buf = {.fd = control_fd, .events = POLLOUT};
    mk_err e;
    while ((e = mk_control_send_kind(control_fd, MK_CONTROL_READY)) == -EAGAIN)
        if (poll(&buf, 1, READY_MS) == 0)
            break;
    return e;
}

static mk_err watch_signals_and_master(struct worker_process *p, const struct mk_worker_process_options *o)
{
    p->signals.on_ready = on_signal;
    p->control.on_ready = on_master_message;
    p->control_fd = o->control_fd;
    p->listeners = o->listeners;
    p->signal_fd = mk_signals_open_fd();
    if (p->signal_fd < 0)
        return p->signal_fd;
    mk_err e = mk_loop_add(&p->worker.loop, p->signal_fd, &p->signals, EPOLLIN);
    if (!e && p->control_fd >= 0)
        e = mk_loop_add(&p->worker.loop, p->control_fd, &p->control, EPOLLIN);
    if (!e) /* before the master learns that the worker serves */
        mk_worker_run_posts(&p->worker);
    if (!e && p->control_fd >= 0)
        e = send_ready(p->control_fd);
    return e;
}

/* ---- Lifetime ---- */

/* Collects the sockets of this worker, and closes those of other workers: a listen queue must end with the
 * worker that accepts from it. */
static mk_err collect_sockets(const struct mk_worker_process_options *o, struct mk_worker_socket **out,
                              size_t *n)
{
    const struct mk_listeners *l = o->listeners;
    *out = mk_mem_zalloc((size_t)l->n * MK_LISTENER_SOCKETS_MAX, sizeof **out);
    *n = 0;
    if (!*out)
        return -ENOMEM;
    for (unsigned i = 0; i < l->n; i++) {
        const struct mk_listen *as = mk_listener_find_listen(&l->at[i], &o->generation->listens);
        for (unsigned j = 0; j < l->at[i].n_fds; j++)
            if (l->at[i].wanted && mk_listener_is_for_worker(&l->at[i], j, o->index, o->workers))
                (*out)[(*n)++] = (struct mk_worker_socket){.fd = l->at[i].fds[j],
                                                           .tls = as && as->tls,
                                                           .http2 = as && as->http2,
                                                           .hosts = as ? as->hosts : NULL};
            else
                mk_fd_close(&l->at[i].fds[j]);
    }
    return 0;
}

static mk_err init_worker(struct worker_process *p, const struct mk_worker_process_options *o)
{
    struct mk_worker_socket *sockets;
    size_t n;
    mk_listeners_close_unwanted(o->listeners, false); /* sockets that the previous generation served, but this
                                                       * one does not */
    mk_err e = collect_sockets(o, &sockets, &n);
    if (e)
        return e;
    e = mk_worker_init(&p->worker,
                       &(struct mk_worker_options){.generation = o->generation,
                                                   .index = o->index,
                                                   .workers = o->workers,
                                                   .counters = o->counters,
                                                   .scoreboard = o->scoreboard,
                                                   .log = p->log,
                                                   .listeners = sockets,
                                                   .n_listeners = n,
                                                   .master_fd = o->control_fd < 0 ? NULL : &o->control_fd,
                                                   .spawner = p->has_spawner ? &p->spawner : NULL});
    p->worker.children.on_lost = on_spawner_lost;
    mk_mem_free(sockets);
    return e;
}

static void redirect_to_null(const struct mk_worker_process_options *o, int null)
{
    mk_daemon_redirect_to_null(STDOUT_FILENO, null);
    mk_daemon_redirect_to_null(STDERR_FILENO, null);
    for (size_t i = 0; i < o->generation->logs.n; i++)
        mk_logfile_redirect_to_null(&o->generation->logs.at[i], null);
}

static mk_err start_worker_process(struct worker_process *p, const struct mk_worker_process_options *o)
{
    int null = mk_daemon_open_null(); /* opened before the sandbox forbids it */
    mk_err e = drop_privileges(p, o);
    if (!e) /* after switching the user, which clears the parent-death signal */
        e = mk_proc_die_with_parent(o->master, SIGQUIT);
    if (!e)
        e = init_worker(p, o);
    if (!e)
        e = mk_worker_sandbox_filter_calls(o->generation, p->log);
    if (!e)
        e = watch_signals_and_master(p, o);
    if (!e && p->has_spawner) /* subprocesses run as our user, but must not read our memory */
        mk_proc_protect_memory();
    if (!e && o->silent)
        redirect_to_null(o, null);
    mk_fd_close(&null);
    return e;
}

int mk_worker_process_main(const struct mk_worker_process_options *o)
{
    struct worker_process *p = mk_mem_zalloc(1, sizeof *p);
    if (!p)
        return 1;
    p->log = &o->log->log;
    o->log->own.lost = 0;   /* the master reports its own lost lines */
    o->counters->pulse = 1; /* odd: the watchdog sees that the worker works until its loop waits */
    mk_proc_set_name("monkey: worker");
    mk_err e = start_worker_process(p, o);
    if (!e)
        e = mk_worker_run(&p->worker);
    if (e) {
        mk_log_error(p->log, "worker %u: %s", o->index, mk_err_text(e));
        return 1;
    }
    mk_worker_fini(&p->worker);
    mk_fd_close(&p->signal_fd);
    mk_mem_free(p);
    return 0;
}
