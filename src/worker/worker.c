/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include <monkey/sized.h>

#include "base/assert.h"
#include "base/mem.h"
#include "connection/conn_manager.h"
#include "logs/errorlog.h"
#include "os/fd.h"
#include "os/sock.h"
#include "setup/plugins.h"
#include "worker/listeners.h"
#include "worker/subprocess.h"
#include "worker/worker_async.h"
#include "worker/worker_busy.h"
#include "worker/worker_master.h"
#include "worker/worker_messages.h"

enum {
    FLUSH_MS = 1000,
    FDS_OF_FILES = 1024, /* maximum number of descriptors reserved for files */
    FDS_KEPT = 16,       /* descriptors for epoll, eventfds, the reserve and so on: not for connections */
    CONNECTIONS_MIN = 16,
};

/* ---- Access log ---- */

/* Flushes the logs FLUSH_MS after the first pending line: later lines do not postpone the flush. */
static void start_flush_timer(struct mk_worker *w)
{
    if (!mk_timer_is_set(&w->flush_timer))
        mk_loop_set_timer(&w->loop, &w->flush_timer, FLUSH_MS);
}

static void write_access_line(const struct mk_access_record *record, void *data)
{
    struct mk_worker *w = data;
    /* A request that failed before its host was known is attributed to the default host. */
    const struct mk_request_limits *limits = mk_dispatch_limits(mk_exchange_of(record->request));
    const struct mk_logfile *f = limits->log;
    if (!f || f->fd < 0 || record->request->site->has_own_access_log)
        return;
    struct mk_logwriter *log = &w->logs[f->index];
    struct mk_buf *out = mk_logwriter_reserve(log, MK_LOG_INFO, MK_ACCESS_LINE);
    if (!out)
        return;
    mk_accesslog_write(out, (enum mk_access_format)limits->log_format, record, &w->clock);
    if (mk_logwriter_commit(log))
        start_flush_timer(w);
}

static void observe_and_log(const struct mk_access_record *record, void *data)
{
    struct mk_worker *w = data;
    w->observer.on_end(record, w->observer.data);
    write_access_line(record, w);
}

static void choose_record_receiver(struct mk_worker *w)
{
    bool is_observed = w->observer.on_end, is_logged = w->generation->logs_access;
    w->web.on_record = is_observed && is_logged ? observe_and_log
                       : is_observed            ? w->observer.on_end
                       : is_logged              ? write_access_line
                                                : NULL;
    w->web.on_record_data = is_observed && !is_logged ? w->observer.data : w;
}

void mk_worker_observe_requests_sized(struct mk_worker *w, const struct mk_request_observer *observer,
                                      size_t observer_size)
{
    struct mk_request_observer full;
    const struct mk_request_observer *o = mk_sized_in(&full, sizeof full, observer, observer_size);
    w->observer = o ? *o : (struct mk_request_observer){.on_end = NULL};
    w->web.on_handle = w->observer.on_handle;
    w->web.on_handle_data = w->observer.data;
    w->web.is_watched = w->web.explanation || w->web.on_handle;
    choose_record_receiver(w);
}

void mk_log_write(struct mk_worker *w, struct mk_logfile *log, mk_str line)
{
    struct mk_buf *out =
        log->fd < 0 ? NULL : mk_logwriter_reserve(&w->logs[log->index], MK_LOG_INFO, line.len + 1);
    if (!out)
        return;
    mk_buf_add(out, line);
    mk_buf_add(out, MK_STR("\n"));
    if (mk_logwriter_commit(&w->logs[log->index]))
        start_flush_timer(w);
}

/* Writes messages to a log other than the error log. */
struct other_log {
    struct mk_log log;
    struct mk_worker *worker;
    struct mk_logfile *file;
};

static void write_to_other_log(struct mk_log *log, enum mk_log_level level, mk_str text)
{
    const struct other_log *o = MK_CONTAINER(log, struct other_log, log);
    struct mk_logwriter *writer = &o->worker->logs[o->file->index];
    struct mk_buf *out =
        mk_logwriter_reserve(writer, level, mk_errorlog_line_size(o->file, text, log->fields));
    if (!out)
        return;
    mk_errorlog_format_line(o->file, level, text, log->fields, out);
    if (mk_logwriter_commit(writer))
        start_flush_timer(o->worker);
}

void mk_request_log_to(struct mk_request *r, struct mk_logfile *file, enum mk_log_level level, mk_str message)
{
    const struct mk_log *log = r->web->log;
    struct other_log other = {.log = {.level = MK_LOG_DEBUG,
                                      .write = write_to_other_log,
                                      .is_json = file->is_json,
                                      .fields = log ? log->fields : NULL,
                                      .message_len = log ? log->message_len : message.len},
                              .worker = r->web->worker,
                              .file = file};
    level = (unsigned)level < MK_LOG_LEVEL_COUNT ? level : MK_LOG_ERROR;
    if (file->fd >= 0)
        mk_request_write_log(r, &other.log, level, message);
}

/* Reports the lost lines of a log, and keeps their count if the error log is not writable either. */
static void report_lost_lines(struct mk_worker *w, struct mk_logwriter *log)
{
    const struct mk_logwriter *errors = &w->logs[w->generation->error_log->index];
    uint64_t before = errors->lost;
    if (!log->lost)
        return;
    if (log == errors)
        mk_errorlog_report_lost(w->manager.log);
    else
        mk_log_error(w->manager.log, "%llu lines of the log %s were lost: %s", (unsigned long long)log->lost,
                     log->file->where.p, mk_logwriter_loss_reason(log));
    if (log != errors && errors->lost <= before)
        log->lost = 0;
    if (log->lost)
        start_flush_timer(w);
}

void mk_worker_flush_logs(struct mk_worker *w)
{
    for (size_t i = 0; i < w->generation->logs.n; i++) {
        mk_logwriter_flush(&w->logs[i]);
        report_lost_lines(w, &w->logs[i]);
        mk_worker_request_rotation(w, &w->logs[i]);
    }
}

static void on_flush_timer(struct mk_timer *t)
{
    mk_worker_flush_logs(MK_CONTAINER(t, struct mk_worker, flush_timer));
}

static mk_err init_logs(struct mk_worker *w, struct mk_log *log)
{
    const struct mk_config_generation *g = w->generation;
    w->logs = mk_mem_zalloc(g->logs.n, sizeof *w->logs);
    if (!w->logs)
        return -ENOMEM;
    for (size_t i = 0; i < g->logs.n; i++)
        mk_logwriter_init(&w->logs[i], &g->logs.at[i]);
    return log ? mk_errorlog_set_writer(log, &w->logs[g->error_log->index]) : 0;
}

static void fini_logs(struct mk_worker *w)
{
    if (w->web.log)
        (void)!mk_errorlog_set_writer(w->web.log, NULL);
    for (size_t i = 0; w->logs && i < w->generation->logs.n; i++)
        mk_logwriter_fini(&w->logs[i]);
    mk_mem_free(w->logs);
}

/* ---- Limits ---- */

static uint64_t zero_to_unlimited(uint64_t n)
{
    return n ? n : UINT64_MAX;
}

/* Descriptors left for connections, files and plugins: document roots, logs and listeners are open
 * already. */
static unsigned available_fds(uint64_t fds)
{
    uint64_t kept = mk_fd_count_open() + FDS_KEPT;
    uint64_t n = fds > kept + CONNECTIONS_MIN ? fds - kept : CONNECTIONS_MIN;
    return n > UINT32_MAX ? UINT32_MAX : (unsigned)n;
}

/* Maximum number of connections. Some descriptors stay reserved for files, however many connections there
 * are. */
static unsigned worker_connections_max(const struct mk_server_settings *s, uint64_t fds, uint64_t all,
                                       unsigned workers)
{
    uint64_t files = s->fdt ? mk_min(s->file_cache, mk_min(fds / 4, FDS_OF_FILES)) : 0;
    uint64_t by_fds = all > files + CONNECTIONS_MIN ? all - files : CONNECTIONS_MIN;
    uint64_t expected = s->max_connections ? (s->max_connections + workers - 1) / workers : by_fds;
    uint64_t n = expected < by_fds ? expected : by_fds;
    return n > UINT32_MAX ? UINT32_MAX : (unsigned)n;
}

static void set_conn_limits(struct mk_conn_manager_limits *l, const struct mk_server_settings *s,
                            const struct mk_request_limits *request, uint64_t fds, unsigned workers)
{
    unsigned descriptors = available_fds(fds);
    *l = (struct mk_conn_manager_limits){
        .head = {.head_max = (size_t)s->max_head_size,
                 .target_max = (size_t)s->max_uri_size,
                 .fields_max = s->max_fields},
        .h2 = {.on = s->site.tls.http2,
               .streams_max = s->max_streams,
               .unread_max = (uint32_t)s->max_unread_body,
               .abuse_budget = s->abuse_budget},
        .request = *request,
        .request_max = s->max_request_size,
        .requests_max = s->max_requests,
        .connections_max = worker_connections_max(s, fds, descriptors, workers),
        .descriptors = descriptors,
        .per_peer_max = s->max_per_address > UINT32_MAX ? 0 : (unsigned)s->max_per_address,
        .keep_alive = s->keep_alive,
        .overcapacity = (enum mk_overcapacity)s->overcapacity,
        .head_ms = s->head_ms,
        .idle_ms = s->idle_ms,
        .linger_ms = s->linger_ms,
    };
}

/* ---- Lifetime ---- */

static bool is_drained(const struct mk_worker *w)
{
    return w->draining && w->manager.n_conns == 0 && w->n_refs == 0;
}

static void on_connection_closed(struct mk_conn_manager *s)
{
    struct mk_worker *w = s->worker;
    if (is_drained(w))
        mk_loop_stop(&w->loop);
    for (struct mk_acceptor *a = w->acceptors; a; a = a->next)
        mk_acceptor_resume(a);
}

static void on_drain_timeout(struct mk_timer *t)
{
    struct mk_worker *w = MK_CONTAINER(t, struct mk_worker, drain_timer);
    if (w->manager.n_conns)
        mk_log_warn(w->manager.log, "closed %u connections: DrainTimeout has expired", w->manager.n_conns);
    if (w->n_refs)
        mk_log_warn(w->manager.log, "aborted work of plugins: DrainTimeout has expired");
    mk_loop_stop(&w->loop);
}

/* A worker that rejects connections is faster than one that serves: on a socket that they share, it would take most
 * connections. */
static void control_acceptor(const struct mk_worker *w, struct mk_acceptor *a)
{
    bool leaves = w->rejection == MK_REJECT_UNSHARED && a->is_shared;
    a->rejects = w->rejection && !leaves;
    mk_acceptor_hold(a, w->holds_accepting || leaves);
}

mk_err mk_worker_add_acceptor(struct mk_worker *w, struct mk_acceptor *a,
                              const struct mk_worker_socket *socket)
{
    mk_err e = mk_sock_start_listening(socket->fd, MK_LISTENERS_BACKLOG);
    if (!e)
        e = mk_acceptor_start(a, &w->manager, socket->fd);
    if (e)
        return e;
    a->wants_tls = socket->tls;
    a->wants_h2 = socket->http2;
    a->hosts = socket->hosts;
    a->is_shared = w->count > 1 && !mk_sock_is_reuse_port(socket->fd);
    a->next = w->acceptors;
    w->acceptors = a;
    control_acceptor(w, a);
    return 0;
}

void mk_worker_remove_acceptor(struct mk_worker *w, struct mk_acceptor *a)
{
    struct mk_acceptor **at = &w->acceptors;
    mk_acceptor_accept_queued(a);
    mk_acceptor_stop(a);
    while (*at && *at != a)
        at = &(*at)->next;
    if (*at)
        *at = a->next;
}

static mk_err start_accepting(struct mk_worker *w, const struct mk_worker_options *o)
{
    w->acceptors_owned = mk_mem_zalloc(o->n_listeners + 1, sizeof *w->acceptors_owned);
    mk_err e = w->acceptors_owned ? 0 : -ENOMEM;
    for (size_t i = 0; i < o->n_listeners && !e; i++)
        e = mk_worker_add_acceptor(w, &w->acceptors_owned[i], &o->listeners[i]);
    return e;
}

static void stop_accepting(struct mk_worker *w)
{
    for (struct mk_acceptor *a = w->acceptors; a; a = a->next)
        mk_acceptor_stop(a);
    w->acceptors = NULL;
}

void mk_worker_hold_accepting(struct mk_worker *w, enum mk_worker_hold by, bool held)
{
    w->holds_accepting = held ? w->holds_accepting | by : w->holds_accepting & ~(uint32_t)by;
    for (struct mk_acceptor *a = w->acceptors; a; a = a->next)
        control_acceptor(w, a);
}

void mk_worker_pause_accepting(struct mk_worker *w, bool paused)
{
    mk_worker_hold_accepting(w, MK_WORKER_HOLD_PLUGIN, paused);
}

void mk_worker_reject_connections(struct mk_worker *w, enum mk_rejection rejection)
{
    w->rejection = rejection;
    for (struct mk_acceptor *a = w->acceptors; a; a = a->next)
        control_acceptor(w, a);
}

void mk_worker_release_memory(struct mk_worker *w, unsigned what)
{
    if (what & (MK_RELEASE_IDLE | MK_RELEASE_INCOMPLETE))
        mk_conn_close_waiting(&w->manager, what & MK_RELEASE_INCOMPLETE);
    mk_worker_release_memory_of_plugins(w, what);
    if (what & MK_RELEASE_CACHES) {
        mk_file_cache_evict_idle(&w->web.files);
        mk_conn_free_freelist(&w->manager);
        mk_arena_cache_fini(&w->manager.arenas);
    }
    mk_mem_trim();
}

static mk_err init_web(struct mk_worker *w, const struct mk_worker_options *o)
{
    const struct mk_server_settings *s = &o->generation->server;
    struct mk_file_cache_limits limits = {
        .files = s->fdt ? s->file_cache : 0,
        .memory = (size_t)(s->file_cache_memory < SIZE_MAX ? s->file_cache_memory : SIZE_MAX),
        .small = (size_t)s->small_file,
        .recheck_ms = s->file_cache_ms};
    w->web = (struct mk_web_ctx){.hosts = &o->generation->hosts, .log = o->log, .worker = w};
    w->web.spools = (struct mk_spool_quota){.folder = o->generation->wants_spool ? s->spool_folder.p : NULL,
                                            .max = zero_to_unlimited(s->spool_max),
                                            .helper = &w->thread_pool.helper,
                                            .hash_key = mk_hash_key_random()};
    for (size_t i = 0; i < o->generation->n_plugins; i++)
        w->web.precise |= mk_plugins_at(o->generation, i)->object.plugin->on_done != NULL;
    choose_record_receiver(w);
    return mk_file_cache_init(&w->web.files, &limits);
}

/* Cleans up on failure. */
static mk_err init_loop_web_and_conns(struct mk_worker *w, const struct mk_worker_options *o)
{
    mk_str name = o->generation->server.hide_version ? MK_STR("Monkey") : MK_STR("Monkey/" MK_VERSION);
    mk_err e = mk_loop_init(&w->loop);
    if (e)
        return e;
    e = init_web(w, o);
    if (!e) {
        e = mk_worker_async_init(w);
        if (!e)
            e = mk_conn_manager_init(&w->manager, &w->loop, &w->web, &w->limits, o->counters, name);
        if (e)
            mk_worker_async_fini(w);
        if (e)
            mk_file_cache_fini(&w->web.files);
    }
    if (e)
        mk_loop_fini(&w->loop);
    return e;
}

mk_err mk_worker_init(struct mk_worker *w, const struct mk_worker_options *o)
{
    const struct mk_server_settings *s = &o->generation->server;
    uint64_t fds = 1024;
    memset(w, 0, offsetof(struct mk_worker, loop));
    w->generation = o->generation;
    w->index = o->index;
    w->count = o->workers;
    w->scoreboard = o->scoreboard;
    w->master_fd = o->master_fd ? *o->master_fd : -1;
    w->web.log = o->log;
    (void)!mk_fd_set_limit(0, &fds);
    set_conn_limits(&w->limits, s, &o->generation->limits, fds, o->workers);
    mk_timer_init(&w->flush_timer, on_flush_timer);
    mk_timer_init(&w->drain_timer, on_drain_timeout);
    mk_worker_messages_init(w);
    mk_err e = init_logs(w, o->log);
    if (!e)
        e = init_loop_web_and_conns(w, o);
    if (e) {
        fini_logs(w);
        return e;
    }
    w->loop.pulse = &o->counters->pulse;
    mk_worker_busy_init(w, o->slow_loop_ms);
    w->manager.worker = w;
    mk_conn_manager_limit_open_files(&w->manager);
    w->manager.on_conn_closed = on_connection_closed;
    w->manager.tls = o->generation->tls;
    mk_conn_manager_set_http2(&w->manager, o->generation->http2);
    w->manager.accept_hooks = o->generation->accept_hooks;
    w->manager.n_accept_hooks = o->generation->n_accept_hooks;
    e = mk_subprocesses_init(&w->children, &w->loop, o->log, o->spawner);
    if (!e)
        e = mk_worker_start_plugins(w);
    if (!e)
        e = mk_worker_messages_start(w);
    if (!e)
        e = start_accepting(w, o);
    mk_worker_set_activity(w, MK_SCOREBOARD_FRESH, "");
    if (e)
        mk_worker_fini(w);
    return e;
}

void mk_worker_fini(struct mk_worker *w)
{
    static const char ending[] = "while it ends";
    mk_worker_set_activity(w, ending, "");
    stop_accepting(w);
    mk_conn_close_all(&w->manager, MK_OUTCOME_SHUTDOWN);
    mk_loop_run_tasks(&w->loop);
    mk_worker_cancel_plugins(w);
    mk_worker_set_activity(w, "waiting for its threads", "");
    mk_worker_async_fini(w); /* first, because pending callbacks may use plugins */
    mk_worker_stop_plugins(w);
    mk_worker_set_activity(w, ending, "");
    mk_loop_run_tasks(&w->loop);
    mk_worker_flush_logs(w);
    mk_subprocesses_fini(&w->children);
    mk_worker_messages_fini(w);
    mk_conn_manager_fini(&w->manager);
    mk_mem_free(w->web.conditions);
    mk_file_cache_fini(&w->web.files);
    mk_loop_fini(&w->loop);
    mk_mem_free(w->acceptors_owned);
    fini_logs(w);
}

mk_err mk_worker_run(struct mk_worker *w)
{
    return mk_loop_run(&w->loop);
}

/* Tells HTTP/2 clients to send no more requests (GOAWAY). */
static void notify_conns_draining(struct mk_worker *w)
{
    MK_LIST_EACH_SAFE (at, &w->manager.conns) {
        struct mk_conn *c = MK_LIST_ENTRY(at, struct mk_conn, link);
        if (c->ops->on_drain)
            c->ops->on_drain(c);
    }
}

void mk_worker_drain(struct mk_worker *w, bool has_successor, uint32_t span_ms)
{
    if (w->draining)
        return;
    w->manager.draining = true;
    for (struct mk_acceptor *a = w->acceptors; a && !has_successor; a = a->next)
        mk_acceptor_accept_queued(a);
    stop_accepting(w);
    notify_conns_draining(w);
    mk_worker_drain_plugins(w);
    w->draining = true; /* set last: closing the first connection must not end the worker */
    if (is_drained(w))
        mk_loop_stop(&w->loop);
    else if (span_ms)
        mk_loop_set_timer(&w->loop, &w->drain_timer, span_ms);
}

void mk_worker_ref(struct mk_worker *w)
{
    w->n_refs++;
}

void mk_worker_unref(struct mk_worker *w)
{
    MK_ASSERT(w->n_refs > 0);
    w->n_refs--;
    if (is_drained(w))
        mk_loop_stop(&w->loop);
}

void mk_worker_stop(struct mk_worker *w)
{
    mk_loop_stop(&w->loop);
}
