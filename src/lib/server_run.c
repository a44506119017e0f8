/* SPDX-License-Identifier: Apache-2.0 */
/* Starting, running and stopping. */
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "event/loop_embed.h"
#include "lib/handle_registry.h"
#include "lib/last_error.h"
#include "lib/lib_worker.h"
#include "lib/live_listeners.h"
#include "lib/server_certificate.h"
#include "lib/setting_check.h"
#include "lib/worker_wakeup.h"
#include "os/fd.h"
#include "setup/plugins.h"
#include "setup/worker_channels.h"

enum { TEXT_MAX = 8 << 20 };

/* ---- Listening sockets ---- */

static bool wait_plugins_ready(struct mk_config_generation *g, struct mk_conf_report *report)
{
    mk_err e;
    while ((e = mk_plugins_check_ready(g, report)) == -EAGAIN)
        (void)poll(&(struct pollfd){.fd = g->ready_fd, .events = POLLIN}, 1,
                   (int)mk_plugins_ready_timeout_ms(g));
    mk_fd_close(&g->ready_fd);
    return !e;
}

static mk_err load_config(struct mk_server *s, unsigned threads)
{
    struct mk_arena arena;
    struct mk_conf_report report;
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    mk_err e = s->path || s->lines.n_hosts ? 0 : mk_config_builder_begin_section(&s->lines, MK_STR("HOST"));
    mk_config_builder_print(&s->lines, &text);
    if (e || text.failed) {
        mk_buf_free(&text);
        return mk_last_error_set_code(s, -ENOMEM);
    }
    const struct mk_config_source origin = {.reader = s->reader,
                                            .path = s->path,
                                            .text = mk_buf_str(&text),
                                            .fill_tree = mk_config_builder_fill_tree,
                                            .ctx = &s->lines,
                                            .embedding = &s->embedding,
                                            .overrides = {.workers = threads}};
    mk_arena_init(&arena, NULL);
    s->generation = mk_config_generation_load(&origin, &arena, &report);
    if (s->generation &&
        !(mk_plugins_start_in_master(s->generation, &report) && wait_plugins_ready(s->generation, &report))) {
        mk_config_generation_free(s->generation);
        s->generation = NULL;
    }
    if (s->generation && s->generation->listens.n == 0 && !s->options.in_memory)
        mk_conf_report_warn(&report, &(struct mk_conf_source_pos){0},
                            "the server has no address: call mk_server_listen() before you start it");
    mk_setting_print_problems(&report, &s->error_text); /* including warnings */
    bool lacks_memory = mk_conf_report_out_of_memory(&report);
    mk_arena_fini(&arena);
    mk_buf_free(&text);
    return mk_last_error_terminate(s, s->generation ? 0 : lacks_memory ? -ENOMEM : -EINVAL);
}

/* Opens all configured sockets. These include the sockets that the program has already opened. */
static mk_err open_sockets(struct mk_server *s, unsigned threads)
{
    char buf[MK_SOCKADDR_TEXT_MAX];
    struct mk_buf where = mk_buf_fixed(buf, sizeof buf);
    const struct mk_listen *failed;
    mk_err e = mk_listeners_open(&s->listeners, &s->generation->listens, threads, &failed);
    if (!e)
        return 0;
    mk_sockaddr_format(&failed->addr, &where);
    return mk_last_error_set(s, e, "cannot listen on `%.*s`: %s", MK_STR_ARG(mk_buf_str(&where)),
                             mk_err_text(e));
}

static mk_err create_workers(struct mk_server *s, unsigned threads)
{
    mk_err e = mk_worker_channels_open(s->generation);
    if (!e)
        e = mk_scoreboard_init(&s->scoreboard, threads);
    s->workers = e ? NULL : mk_mem_zalloc(threads, sizeof *s->workers);
    if (!s->workers)
        return mk_last_error_set_code(s, e ? e : -ENOMEM);
    s->scoreboard.master_pid = getpid();
    s->scoreboard.started_at = mk_clock_unix();
    for (unsigned i = 0; i < threads; i++) {
        s->workers[i] =
            (struct mk_lib_worker){.server = s, .index = i, .stop_at = MK_SERVER_STOP_NOT_REQUESTED};
        s->scoreboard.at[i] = (struct mk_scoreboard_slot){.pid = s->scoreboard.master_pid,
                                                          .started = (uint64_t)s->scoreboard.started_at};
    }
    atomic_store(&s->n_workers, threads); /* last: mk_server_stop() may access them from now on */
    return 0;
}

static void free_workers(struct mk_server *s)
{
    atomic_store(&s->n_workers, 0);
    mk_worker_wakeup_wait(s);
    mk_live_listeners_free(s);
    mk_mem_free(s->workers);
    s->workers = NULL;
    mk_scoreboard_fini(&s->scoreboard);
    if (s->generation)
        mk_config_generation_free(s->generation);
    s->generation = NULL;
}

static void set_phase(struct mk_server *s, enum mk_server_phase phase)
{
    pthread_mutex_lock(&s->lock);
    s->phase = phase;
    pthread_mutex_unlock(&s->lock);
}

static mk_err prepare_start(struct mk_server *s, unsigned threads, enum mk_server_run_mode run_mode)
{
    mk_err e = mk_last_error_require_setup(s);
    if (e)
        return e;
    set_phase(s, MK_SERVER_STARTING);
    e = load_config(s, threads);
    if (!e)
        e = open_sockets(s, threads);
    if (!e)
        e = create_workers(s, threads);
    if (!e && (e = mk_live_listeners_create(s)))
        (void)mk_last_error_set_code(s, e);
    if (e) {
        free_workers(s);
        set_phase(s, MK_SERVER_SETTING_UP);
        return e;
    }
    s->run_mode = run_mode;
    return 0;
}

/* ---- One loop ---- */

/* Marks the worker as ready: from now on its loop may be woken. */
static void signal_ready(struct mk_lib_worker *r, mk_err e)
{
    struct mk_server *s = r->server;
    pthread_mutex_lock(&s->lock);
    r->is_ready = true;
    atomic_store(&r->serves, e == 0);
    r->result = e;
    pthread_mutex_unlock(&s->lock);
    pthread_cond_broadcast(&s->changed); /* after unlocking, so that the woken threads get the lock at once */
    /* Wakes the loop if a stop was requested, or a listener added, before the loop could be woken. */
    if (!e && (atomic_load(&s->stop_at) != MK_SERVER_STOP_NOT_REQUESTED ||
               atomic_load(&s->listeners_version) != r->listeners_version))
        mk_loop_wakeup(&r->worker.loop);
}

static mk_err start_worker(struct mk_lib_worker *r)
{
    mk_lib_worker_enter(r);
    mk_err e = mk_lib_worker_start(r);
    signal_ready(r, e);
    return e;
}

static void stop_worker(struct mk_lib_worker *r)
{
    if (!atomic_exchange(&r->serves, false))
        return;
    mk_worker_wakeup_wait(r->server);
    mk_lib_worker_stop(r);
}

static mk_err run_worker(struct mk_lib_worker *r)
{
    mk_err e = start_worker(r);
    if (!e)
        e = mk_worker_run(&r->worker);
    stop_worker(r);
    mk_lib_worker_leave(r);
    return e;
}

int mk_server_run(struct mk_server *s)
{
    int before MK_KEEP_ERRNO = errno;
    mk_err e = prepare_start(s, 1, MK_SERVER_IN_CALLER);
    if (e)
        return e;
    set_phase(s, MK_SERVER_RUNNING);
    e = run_worker(&s->workers[0]);
    set_phase(s, MK_SERVER_ENDED);
    return e ? mk_last_error_set_code(s, e) : 0;
}

/* ---- Requests to stop ---- */

/* An earlier deadline replaces a later one, never the reverse. */
static void request_stop(struct mk_server *s, int64_t stop_at)
{
    int64_t current = atomic_load(&s->stop_at);
    while (stop_at < current && !atomic_compare_exchange_weak(&s->stop_at, &current, stop_at))
        ;
    if (stop_at < current)
        mk_worker_wakeup_all(s);
}

/* ---- Threads ---- */

static void *worker_thread_main(void *data)
{
    struct mk_lib_worker *r = data;
    mk_err e = run_worker(r);
    pthread_mutex_lock(&r->server->lock);
    r->result = e;
    pthread_mutex_unlock(&r->server->lock);
    return NULL;
}

/* Blocks signals in the new threads: signals are for the program's own threads. */
static mk_err start_threads(struct mk_server *s)
{
    sigset_t all, before;
    int e = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned i = 0; i < s->n_workers && !e; i++) {
        e = pthread_create(&s->workers[i].id, NULL, worker_thread_main, &s->workers[i]);
        s->workers[i].has_id = e == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -e;
}

static mk_err wait_ready(struct mk_server *s)
{
    mk_err e = 0;
    pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < s->n_workers; i++)
        while (s->workers[i].has_id && !s->workers[i].is_ready)
            pthread_cond_wait(&s->changed, &s->lock);
    for (unsigned i = 0; i < s->n_workers && !e; i++)
        e = s->workers[i].has_id ? s->workers[i].result : 0;
    pthread_mutex_unlock(&s->lock);
    return e;
}

static mk_err join_threads(struct mk_server *s)
{
    mk_err e = 0;
    for (unsigned i = 0; i < s->n_workers; i++) {
        struct mk_lib_worker *r = &s->workers[i];
        if (r->has_id)
            pthread_join(r->id, NULL);
        r->has_id = false;
        e = e ? e : r->result;
    }
    return e;
}

int mk_server_start(struct mk_server *s, unsigned threads)
{
    int before MK_KEEP_ERRNO = errno;
    mk_err e = mk_last_error_require_setup(s);
    if (!e && (threads < 1 || threads > MK_LISTENER_SOCKETS_MAX))
        return mk_last_error_set(s, -EINVAL, "%u threads: expected 1 to %d", threads,
                                 MK_LISTENER_SOCKETS_MAX);
    if (!e)
        e = prepare_start(s, threads, MK_SERVER_IN_THREADS);
    if (e)
        return e;
    set_phase(s, MK_SERVER_RUNNING);
    e = start_threads(s);
    mk_err worse = wait_ready(s);
    e = e ? e : worse;
    if (!e)
        return 0;
    request_stop(s, MK_SERVER_STOP_AT_ONCE);
    (void)join_threads(s);
    set_phase(s, MK_SERVER_ENDED);
    return mk_last_error_set(s, e, "cannot start %u threads: %s", threads, mk_err_text(e));
}

int mk_server_wait(struct mk_server *s)
{
    int before MK_KEEP_ERRNO = errno;
    if (!mk_handle_is_valid(s))
        return -EINVAL;
    if (mk_lib_worker_is_in_call(s))
        return -EDEADLK;
    if (s->run_mode != MK_SERVER_IN_THREADS || s->phase == MK_SERVER_SETTING_UP)
        return 0;
    mk_err e = join_threads(s);
    set_phase(s, MK_SERVER_ENDED);
    return e;
}

/* ---- Steps ---- */

int mk_server_fd(struct mk_server *s)
{
    int before MK_KEEP_ERRNO = errno;
    if (mk_handle_is_valid(s) && s->phase >= MK_SERVER_RUNNING && s->run_mode == MK_SERVER_IN_STEPS &&
        s->n_workers)
        return s->workers[0].worker.loop.epoll_fd;
    mk_err e = prepare_start(s, 1, MK_SERVER_IN_STEPS);
    if (e)
        return e;
    struct mk_lib_worker *r = &s->workers[0];
    set_phase(s, MK_SERVER_RUNNING);
    e = start_worker(r);
    if (!e)
        e = mk_loop_embed_start(&r->worker.loop);
    mk_lib_worker_leave(r);
    if (!e)
        return r->worker.loop.epoll_fd;
    stop_worker(r);
    set_phase(s, MK_SERVER_ENDED);
    return mk_last_error_set_code(s, e);
}

int mk_server_step(struct mk_server *s)
{
    int before MK_KEEP_ERRNO = errno;
    if (!mk_handle_is_valid(s))
        return -EINVAL;
    if (s->phase == MK_SERVER_ENDED)
        return 0;
    if (s->phase != MK_SERVER_RUNNING || s->run_mode != MK_SERVER_IN_STEPS || mk_lib_worker_is_in_call(s))
        return mk_last_error_set_misuse(
            s, "call mk_server_fd() before the first step, and do not call mk_server_step() inside a step");
    if (atomic_exchange(&s->is_stepping, true))
        return mk_last_error_set_misuse(s, "another thread is in mk_server_step()");
    struct mk_lib_worker *r = &s->workers[0];
    mk_lib_worker_enter(r);
    mk_err e = mk_loop_embed_step(&r->worker.loop);
    mk_lib_worker_leave(r);
    atomic_store(&s->is_stepping, false);
    if (!e && !r->worker.loop.stopped)
        return 1;
    set_phase(s, MK_SERVER_ENDED);
    return e ? mk_last_error_set_code(s, e) : 0;
}

/* ---- Stopping and freeing ---- */

void mk_server_stop(struct mk_server *s, uint32_t drain_ms)
{
    int before MK_KEEP_ERRNO = errno;
    if (!mk_handle_is_valid(s))
        return;
    if (drain_ms == 0)
        request_stop(s, MK_SERVER_STOP_AT_ONCE);
    else if (drain_ms == UINT32_MAX)
        request_stop(s, MK_SERVER_STOP_NO_DEADLINE);
    else
        request_stop(s, (int64_t)mk_clock_ms() + drain_ms);
}

/* Returns why the server cannot be freed now; NULL: it can be freed. */
static const char *reason_not_to_free(struct mk_server *s)
{
    if (mk_lib_worker_is_in_call(s))
        return "mk_server_free() was called by the server itself: nothing was freed";
    if (atomic_load(&s->is_stepping))
        return "mk_server_free() was called while another thread was in mk_server_step(): nothing was freed";
    pthread_mutex_lock(&s->lock);
    bool runs = s->phase == MK_SERVER_RUNNING && s->run_mode == MK_SERVER_IN_CALLER;
    pthread_mutex_unlock(&s->lock);
    return runs ? "mk_server_free() was called while mk_server_run() was running: nothing was freed" : NULL;
}

void mk_server_free(struct mk_server *s)
{
    int before MK_KEEP_ERRNO = errno;
    const char *reason = mk_handle_is_valid(s) ? reason_not_to_free(s) : "";
    if (reason) {
        if (*reason && s->options.on_log && !atomic_exchange(&s->is_complaining, true)) {
            s->options.on_log(s->options.log_ctx, MK_LOG_ERROR, mk_str_from_c(reason));
            atomic_store(&s->is_complaining, false);
        }
        return;
    }
    mk_handle_unregister(s);
    request_stop(s, MK_SERVER_STOP_AT_ONCE);
    (void)join_threads(s);
    if (s->n_workers && s->run_mode == MK_SERVER_IN_STEPS) {
        mk_lib_worker_enter(&s->workers[0]); /* callbacks of open connections must not free the server
                                              * again */
        stop_worker(&s->workers[0]);
    }
    mk_server_certificate_free_replaced(s);
    mk_live_listeners_close_all(s);
    mk_listeners_close_all(&s->listeners, true);
    free_workers(s);
    mk_app_routes_free(&s->program);
    mk_config_builder_free(&s->lines);
    mk_buf_free(&s->error_text);
    mk_mem_free(s->path);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->changing);
    pthread_mutex_destroy(&s->lock);
    mk_mem_free(s);
}
