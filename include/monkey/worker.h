/* SPDX-License-Identifier: Apache-2.0 */
/* Workers, the processes that serve requests: clock, data, waiting, messages between workers, and
 * statistics. */
#ifndef MONKEY_WORKER_H
#define MONKEY_WORKER_H

#include <monkey/access_record.h>
#include <monkey/addr.h>
#include <monkey/buf.h>
#include <monkey/log.h>
#include <monkey/stats.h>
#include <monkey/timer.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mk_vhost;
struct mk_logfile;
struct mk_plugin;
struct mk_stat_registry;

/**
 * A worker: an event loop, which serves the connections that it accepted. Call the functions in this file
 * only in the thread of the loop, from hooks, handlers, body sources and the callbacks below, unless stated
 * otherwise. Nothing that runs in the loop may block.
 */
struct mk_worker;

/** The index of the worker, from 0. */
MK_API unsigned mk_worker_index(const struct mk_worker *worker);
/**
 * The number of workers.
 *
 *     static int start(struct mk_worker *worker, void **data)
 *     {
 *         mk_worker_log(worker, MK_LOG_INFO, "worker %u of %u", mk_worker_index(worker) + 1, mk_worker_count(worker));
 *         return 0;
 *     }
 */
MK_API unsigned mk_worker_count(const struct mk_worker *worker);
/** Is the worker draining? It then accepts no more connections, and exits when its connections have ended. */
MK_API bool mk_worker_is_draining(const struct mk_worker *worker);
/**
 * The monotonic clock in milliseconds, read once per loop iteration.
 *
 *     uint64_t begin_ms = mk_worker_now_ms(worker);
 */
MK_API uint64_t mk_worker_now_ms(const struct mk_worker *worker);
/** The time in seconds since the Unix epoch, read once per loop iteration. */
MK_API int64_t mk_worker_now(const struct mk_worker *worker);
/**
 * Writes a message to the error log of the server. Control characters are replaced.
 *
 *     mk_worker_log(worker, MK_LOG_WARN, "the cache is full: %zu entries", n_entries);
 */
MK_API void mk_worker_log(struct mk_worker *worker, enum mk_log_level level, const char *fmt, ...)
    MK_API_PRINTF(3, 4);
/** Writes a message with fields to the error log of the server. */
MK_API void mk_worker_log_fields(struct mk_worker *worker, enum mk_log_level level, mk_str message,
                                 const struct mk_log_fields *fields);
/** Sets the pointer that the worker keeps for the plugin, initially NULL. Call it in worker_start, and free
 * the pointer's target in worker_stop. */
MK_API void mk_worker_set_data(struct mk_worker *worker, const struct mk_plugin *plugin, void *data);
/** Returns the pointer set with mk_worker_set_data(). */
MK_API void *mk_worker_data(const struct mk_worker *worker, const struct mk_plugin *plugin);

/* ---- Waiting ---- */

/** A watched descriptor. */
struct mk_watcher;

/** Events of a descriptor, and how they are reported. */
enum {
    MK_READABLE = 1,
    MK_WRITABLE = 2,
    MK_HUNG_UP = 4, /**< both directions were shut down, or an error occurred */
    MK_ENDED = 8,   /**< the peer sends no more; unread data may remain */
    MK_LEVEL = 16   /**< in `events`: level triggered, not edge triggered */
};

/**
 * Calls on_ready(ctx, which) whenever the descriptor becomes ready for `events`: MK_READABLE, MK_WRITABLE, or
 * neither. The descriptor must be non-blocking. The caller owns it, and keeps it open until after
 * mk_watcher_free(). Events are edge triggered: continue until -EAGAIN, or until a read from a socket returns
 * less than you requested (after MK_ENDED, until it returns 0). With MK_LEVEL, for libraries that decide
 * themselves how much they read, on_ready is called again for unread data. MK_HUNG_UP is always reported,
 * together with all of `events`, because unread data may remain; MK_ENDED is reported together with
 * MK_READABLE. Returns NULL if out of memory, or if the descriptor cannot be watched or already has a
 * watcher.
 *
 *     static void on_ready(void *ctx, unsigned which)
 *     {
 *         read_events(ctx);
 *     }
 *     struct mk_watcher *watcher = mk_watcher_new(worker, fd, MK_READABLE, on_ready, device);
 *     if (!watcher)
 *         return -ENOMEM;
 */
MK_API struct mk_watcher *mk_watcher_new(struct mk_worker *worker, int fd, unsigned events,
                                         void (*on_ready)(void *ctx, unsigned which),
                                         void *ctx) MK_API_MUST_USE;
/** Changes the watched events. Events for which the descriptor is already ready are reported again. Returns
 * 0 or a negative errno value. */
MK_API int mk_watcher_change(struct mk_watcher *watcher, unsigned events);
/** Changes the callback. */
MK_API void mk_watcher_set_callback(struct mk_watcher *watcher, void (*on_ready)(void *ctx, unsigned which),
                                    void *ctx);
/** Removes the watcher. Its callback is never called again, not even for events that have already
 * occurred. Any callback may call this, including its own; call it in worker_stop at the latest. NULL is
 * allowed. */
MK_API void mk_watcher_free(struct mk_watcher *watcher);
/** Removes the watcher of a descriptor that is already closed, which saves a system call. Call it only if no
 * other descriptor refers to the same open file (dup(2), fork(2)). NULL is allowed. */
MK_API void mk_watcher_free_closed(struct mk_watcher *watcher);

/** A callback that runs at the end of a loop iteration. */
struct mk_deferred;

/**
 * Creates a deferred callback, which is not scheduled yet. Use it to collect the data that several requests
 * of one loop iteration send to the same peer, and send it all at once: batched database queries, for
 * example, cost a fraction of what single queries cost. Returns NULL if out of memory. Free every deferred
 * callback in worker_stop at the latest.
 */
MK_API struct mk_deferred *mk_deferred_new(struct mk_worker *worker, void (*on_end)(void *ctx),
                                           void *ctx) MK_API_MUST_USE;
/** Schedules one call to on_end(ctx), after all events and timers of this loop iteration were handled, and
 * the requests that they resumed have run. If you schedule it in an on_end callback, including its own, it
 * runs at the end of the next iteration. Scheduling it again before it runs has no effect. */
MK_API void mk_deferred_post(struct mk_deferred *deferred);
/** Cancels and frees the deferred callback; allowed in its own on_end. NULL is allowed. */
MK_API void mk_deferred_free(struct mk_deferred *deferred);

/**
 * Runs work(ctx) in another thread, where it may block, and then done(ctx) in the loop. `work` must access
 * nothing of the worker, the request or the configuration except through `ctx`. `ctx` must live until `done`,
 * so do not allocate it from a request, which may end earlier. If the result is 0, both functions are called,
 * even if the worker stops in the meantime: it waits for them before worker_stop. On -EAGAIN (no thread is
 * available, too many jobs (1024) are queued, or the worker is stopping), neither is called. Threads are
 * scarce: a worker has 4 of them for this purpose.
 *
 *     static void hash(void *ctx) // in a thread: must not use the worker
 *     {
 *         hash_password(ctx);
 *     }
 *     static void respond(void *ctx) // in the worker again
 *     {
 *         finish_job(ctx);
 *     }
 *     int e = mk_worker_offload(worker, hash, respond, job);
 */
MK_API int mk_worker_offload(struct mk_worker *worker, void (*work)(void *ctx), void (*done)(void *ctx),
                             void *ctx) MK_API_MUST_USE;

/** A thread pool of a plugin, for work that would otherwise occupy the four threads above: a database
 * library that blocks, or a slow computation. */
struct mk_thread_pool;

/**
 * Creates a pool of at most `n` threads (1 to 64), which start on demand, with at most `waiting_max` queued
 * jobs. Call it in worker_start or later. Returns NULL if out of memory, or if `n` is out of range. Free the
 * pool in worker_stop at the latest.
 */
MK_API struct mk_thread_pool *mk_thread_pool_new(struct mk_worker *worker, unsigned n,
                                                 unsigned waiting_max) MK_API_MUST_USE;
/** Like mk_worker_offload(), but in a thread of this pool. Returns -EAGAIN if the queue is full, or no thread
 * can be started. */
MK_API int mk_thread_pool_submit(struct mk_thread_pool *pool, void (*work)(void *ctx),
                                 void (*done)(void *ctx), void *ctx) MK_API_MUST_USE;
/** Waits for all jobs, calls done() for each, and frees the pool. Not allowed in done() of its own
 * jobs. NULL is allowed. */
MK_API void mk_thread_pool_free(struct mk_thread_pool *pool);

/**
 * Schedules fn(ctx) to run soon in the loop, in the order of the calls. Any thread may call it while the
 * worker lives: your own threads must have ended when worker_stop returns. Returns 0 if fn will be called,
 * even if the worker stops (then before worker_stop). Returns -ENOMEM, or -ESHUTDOWN if the worker is
 * stopping: fn is then not called.
 *
 *     static void finish(void *ctx) // in the worker
 *     {
 *         finish_job(ctx);
 *     }
 *     int e = mk_worker_post(worker, finish, job); // from another thread
 */
MK_API int mk_worker_post(struct mk_worker *worker, void (*fn)(void *ctx), void *ctx) MK_API_MUST_USE;

/** Takes a reference to the worker, for background work that is not tied to a connection: a draining
 * worker then keeps running until mk_worker_unref(), but at most for `DrainTimeout`, even when all of its
 * connections are closed. Pair each call with mk_worker_unref(). */
MK_API void mk_worker_ref(struct mk_worker *worker);
MK_API void mk_worker_unref(struct mk_worker *worker);

/* ---- The server as a whole ---- */

/**
 * Sends a message to the same plugin in other workers, whose on_message receives it. `to` is an index, or
 * MK_TO_ALL, which includes the sender. Only workers of the same configuration receive it, and never before
 * this function has returned. The maximum size is 32 KB.
 *
 * Messages are sent at the end of the loop iteration in one batch per worker, so many small ones are cheap.
 * Messages from one sender to another worker arrive in order; there is no other ordering guarantee. A message
 * arrives complete, or is lost because the receiver dies after taking it or the sender before sending it.
 * Messages queued for an exiting worker go to its replacement.
 *
 * The sender queues up to 1 MB of messages for each receiver, itself included. If the receiver's queue is
 * full, the function returns -EAGAIN (try again later). With MK_TO_ALL, it returns -EAGAIN only if the
 * sender's own queue is full, and then no worker receives the message. Another worker whose queue is full
 * misses the message, with a warning in the log; all others receive it, and the function returns 0.
 *
 * Returns 0, -EMSGSIZE, -EINVAL (invalid index, or the plugin is not loaded), -EAGAIN, -ENOMEM, or -ENOTCONN.
 * -ENOTCONN means that there is no master: the sender then receives the message if `to` includes the sender,
 * and no other worker receives it. After any other error, no worker receives the message.
 */
MK_API int mk_worker_send(struct mk_worker *worker, const struct mk_plugin *plugin, unsigned to,
                          mk_str message);
/** All workers, as the receiver of a message. */
#define MK_TO_ALL (~0u)

/** Receives the result of a command that does not end at once. */
struct mk_command_end {
    /** Called once, in the loop, and before worker_stop at the latest. `error` is the result that on_command
     * would have returned, and `text` the response that it would have appended. */
    void (*done)(void *ctx, int error, mk_str text);
    void *ctx;
};
/** Runs a command of the administrator: calls on_command of the plugin with this name (see struct mk_plugin
 * for the parameters). Returns its result; -ENOENT if no such plugin is loaded, or if it has no
 * on_command. */
MK_API int mk_worker_run_command(struct mk_worker *worker, mk_str plugin, mk_str words, struct mk_buf *out,
                                 const struct mk_command_end *end);

/** Asks the master to reload the configuration, because a file that it refers to has changed, such as a
 * certificate. The master loads the text of the active configuration again, and ignores changes to the
 * configuration files. Returns 0 or a negative errno value. */
MK_API int mk_worker_request_reload(struct mk_worker *worker);
/** A change to the configuration that an administrator requests. */
enum mk_config_action {
    MK_CONFIG_RELOAD,  /**< load the files, as after SIGHUP */
    MK_CONFIG_CONFIRM, /**< keep the active configuration, which mk_config_request.confirm_s would otherwise
                            replace */
    MK_CONFIG_ROLLBACK /**< load an earlier configuration */
};
/** A request to change the configuration. */
struct mk_config_request {
    enum mk_config_action action;
    uint32_t confirm_s; /**< MK_CONFIG_RELOAD: restore the present configuration after this many seconds,
                             unless MK_CONFIG_CONFIRM is received first; at most 86,400; 0: never */
    uint32_t number;    /**< MK_CONFIG_ROLLBACK: number in `monkey configurations`; 0: the previous
                             configuration */
    mk_str by;          /**< name of the requester, for the log and `monkey configurations`; at most 95
                             bytes */
    uint64_t id;        /**< a random number that identifies the request in mk_worker_config_result(); 0: the
                             result is not needed */
};
/** Sends the request to the master; mk_worker_config_result() returns its result. Returns 0, -EINVAL if a
 * member is out of range, or another negative errno value. */
MK_API int mk_worker_request_config_sized(struct mk_worker *worker, const struct mk_config_request *request,
                                          size_t request_size);
static inline int mk_worker_request_config(struct mk_worker *worker, const struct mk_config_request *request)
{
    return mk_worker_request_config_sized(worker, request, sizeof *request);
}
/** Returns the result of the request with this `id`, which any worker may have sent: 0 if it succeeded,
 * -ECANCELED if it failed, or -EAGAIN if there is no result yet. `text`, unless NULL, receives a description
 * of the outcome, or the error messages: up to 2 KB, possibly several lines. The server keeps the last 16
 * results. */
MK_API int mk_worker_config_result(const struct mk_worker *worker, uint64_t id, struct mk_buf *text);
/** Asks the master to replace this worker: the worker drains, as during a reload, and a new worker with the
 * same index and the same configuration takes its place. The master does not reload the configuration, and
 * the other workers keep running. The master replaces the worker with a given index at most once in 30
 * seconds, and ignores requests in between: repeat the request as long as its reason persists. Returns 0 or a
 * negative errno value. */
MK_API int mk_worker_request_replacement(struct mk_worker *worker);
/** Results of all reloads since the server started, regardless of what triggered them. */
struct mk_reloads {
    uint64_t done;              /**< number of successful reloads */
    uint64_t failed;            /**< number of failed reloads: the old configuration stayed active */
    int64_t done_at, failed_at; /**< times of the last successful and the last failed reload, in seconds since
                                     the Unix epoch; 0: never */
    bool last_failed;           /**< whether the most recent reload failed */
    bool in_progress;           /**< a reload is in progress; a reload requested now follows it */
    int64_t confirm_at;         /**< when the previous configuration will be restored unless this one is
                                     confirmed, in seconds since the Unix epoch; 0: no confirmation is
                                     pending */
};
/** Returns the results of reloads. `error`, unless NULL, receives the messages of the last failed reload,
 * up to 4 KB: lines as in the error log, with file names and source text. */
MK_API void mk_worker_reloads_sized(const struct mk_worker *worker, struct mk_reloads *out, size_t out_size,
                                    struct mk_buf *error);
static inline void mk_worker_reloads(const struct mk_worker *worker, struct mk_reloads *out,
                                     struct mk_buf *error)
{
    mk_worker_reloads_sized(worker, out, sizeof *out, error);
}
/** Sets the level of the error log in all workers, shortly after the call, until an administrator reloads the
 * configuration. Returns 0 or a negative errno value. */
MK_API int mk_worker_set_log_level(struct mk_worker *worker, enum mk_log_level level);
/** The current level of the error log in this worker. */
MK_API enum mk_log_level mk_worker_log_level(const struct mk_worker *worker);

/** Writes a line (the line ending is added) to a log opened with mk_config_log(). Lines are buffered, and
 * written in blocks within a second. */
MK_API void mk_log_write(struct mk_worker *worker, struct mk_logfile *log, mk_str line);
/** Counters of a worker process since it started. */
struct mk_worker_stats {
    int64_t pid;            /**< 0: the slot is unused; the counters belong to its last process */
    uint64_t started;       /**< seconds since the Unix epoch */
    uint64_t accepted;      /**< connections accepted */
    uint64_t dropped;       /**< connections rejected because of a limit */
    uint64_t open;          /**< connections open now */
    uint64_t requests;      /**< requests completed */
    uint64_t by_class[6];   /**< responses by the first digit of their status; 0: no response was started */
    uint64_t by_outcome[8]; /**< requests, indexed by enum mk_outcome; unused elements are 0 */
    uint64_t sent;          /**< bytes accepted by sockets */
    bool draining;          /**< draining: serves an older configuration until its connections end */
};

/** Returns the counters of the i-th process, including those of other configurations; false if `i` is
 * out of range. The data may be slightly out of date. */
MK_API bool mk_worker_stats_at_sized(const struct mk_worker *worker, size_t i, struct mk_worker_stats *out,
                                     size_t out_size);
static inline bool mk_worker_stats_at(const struct mk_worker *worker, size_t i, struct mk_worker_stats *out)
{
    return mk_worker_stats_at_sized(worker, i, out, sizeof *out);
}
/** The sum of the counters of processes whose slots were reused. Together with the counters of all
 * processes above, it gives the totals since the server started. */
MK_API void mk_worker_stats_ended_sized(const struct mk_worker *worker, struct mk_worker_stats *out,
                                        size_t out_size);
static inline void mk_worker_stats_ended(const struct mk_worker *worker, struct mk_worker_stats *out)
{
    mk_worker_stats_ended_sized(worker, out, sizeof *out);
}
/** The i-th reason for which the server closed HTTP/2 connections, as a word ("resets", "pings", ...),
 * and the number of these connections in all workers since the server started. Returns false if `i` is out
 * of range. */
MK_API bool mk_worker_stats_h2_closed(const struct mk_worker *worker, size_t i, const char **reason,
                                      uint64_t *n);
/** The statistics of the server; NULL if nothing is counted. */
MK_API struct mk_stat_registry *mk_worker_statistics(const struct mk_worker *worker);
/** The statistics of the i-th other server: see mk_config_add_statistics(). Returns false if `i` is out of
 * range. */
MK_API bool mk_worker_statistics_at_sized(const struct mk_worker *worker, size_t i,
                                          struct mk_stat_source *out, size_t out_size);
static inline bool mk_worker_statistics_at(const struct mk_worker *worker, size_t i,
                                           struct mk_stat_source *out)
{
    return mk_worker_statistics_at_sized(worker, i, out, sizeof *out);
}
/** The cells of a series that this worker writes: see mk_stat_cells(). Call it in worker_start or later. */
MK_API uint64_t *mk_worker_cells(const struct mk_worker *worker, uint32_t series);
/**
 * Measures the event loop: from now on, the duration of each iteration is added to this histogram
 * (MK_STAT_HISTOGRAM, see monkey/stats.h), whose cells must live as long as the worker. While an iteration
 * runs, all other connections of the worker wait: long iterations reveal a handler that blocks. A worker has
 * one such histogram, and a later call replaces it. NULL stops measuring.
 */
MK_API void mk_worker_measure_loop(struct mk_worker *worker, uint64_t *cells);
/** Observes all requests of a worker. Cheaper than hooks, which are called for each virtual host. */
struct mk_request_observer {
    /** Called before the first handler other than `static`, and whenever a request starts to wait: several
     * times for some requests, and never for others. */
    void (*on_handle)(struct mk_request *request, void *data);
    /** Called when a request has ended, after on_done of all plugins. */
    void (*on_end)(const struct mk_access_record *record, void *data);
    void *data;
};
/** Sets the observer of the worker, which has only one: a later call replaces it, and NULL removes it. The
 * struct is copied. Call the function in worker_start, and with NULL in worker_stop. */
MK_API void mk_worker_observe_requests_sized(struct mk_worker *worker,
                                             const struct mk_request_observer *observer,
                                             size_t observer_size);
static inline void mk_worker_observe_requests(struct mk_worker *worker,
                                              const struct mk_request_observer *observer)
{
    mk_worker_observe_requests_sized(worker, observer, sizeof *observer);
}

/** The process ID under which the server started. */
MK_API int64_t mk_worker_master_pid(const struct mk_worker *worker);
/** The time when the server started, in seconds since the Unix epoch. */
MK_API int64_t mk_worker_server_started_at(const struct mk_worker *worker);

/** An open connection of this worker. Strings are valid during the callback. */
struct mk_conn_info {
    struct mk_addr peer;
    const char *state;     /**< "idle", "head", "dispatch", "send", ... */
    uint32_t requests;     /**< requests started on the connection */
    mk_str method, target; /**< method and target of the request in progress; absent if there is none */
    mk_str host;
    uint64_t age_ms; /**< age of that request */
};
/** Calls each() for every connection of this worker until each() returns false. */
MK_API void mk_worker_each_conn(struct mk_worker *worker,
                                bool (*each)(const struct mk_conn_info *info, void *ctx), void *ctx);

/** Usage and limits of the worker's cache of open files. */
struct mk_cache_info {
    size_t files, files_max, memory, memory_max;
};
/** Returns the usage and limits of the cache. */
MK_API void mk_worker_cache_sized(const struct mk_worker *worker, struct mk_cache_info *out, size_t out_size);
static inline void mk_worker_cache(const struct mk_worker *worker, struct mk_cache_info *out)
{
    mk_worker_cache_sized(worker, out, sizeof *out);
}
/** Closes all cached files that are not in use. */
MK_API void mk_worker_cache_clear(struct mk_worker *worker);

/** The memory that mk_worker_release_memory() frees, as flags. */
enum mk_release {
    MK_RELEASE_CACHES = 1, /**< caches, such as that of open files, and spare memory */
    MK_RELEASE_IDLE = 2, /**< idle connections to backends, and client connections that have been idle for at
                              least 5 seconds */
    MK_RELEASE_INCOMPLETE =
        4 /**< connections with an incomplete TLS handshake or request head (HTTP/1 clients get
                              a 408), except HTTP/2 connections; also all idle client connections, even if
                              idle for less than 5 seconds */
};
/** Frees memory, calls on_release_memory() of all plugins, and returns the memory to the system. `what` are
 * flags of enum mk_release. Call it from a timer, not from a hook of a request. */
MK_API void mk_worker_release_memory(struct mk_worker *worker, unsigned what);
/** Pauses or resumes accepting connections. During the pause, new connections wait in the accept queue of the
 * socket, which other workers do not read unless they share the socket. Open connections are served as
 * usual. */
MK_API void mk_worker_pause_accepting(struct mk_worker *worker, bool paused);
/** The new connections that a worker rejects. */
enum mk_rejection {
    MK_REJECT_NONE,
    MK_REJECT_UNSHARED, /**< connections to its own sockets. Sockets that it shares with other workers are
                             paused instead, so that those workers accept the connections */
    MK_REJECT_ALL
};
/** Starts or stops rejecting new connections. A rejected client gets 503 or, on a socket that accepts only
 * TLS or HTTP/2, a reset. A rejection needs almost no memory. Open connections are served as usual. */
MK_API void mk_worker_reject_connections(struct mk_worker *worker, enum mk_rejection rejection);

/** The i-th virtual host, including the default one; NULL if `i` is out of range. */
MK_API const struct mk_vhost *mk_worker_vhost_at(const struct mk_worker *worker, size_t i);
/** The i-th loaded plugin, in hook order; NULL if `i` is out of range. */
MK_API const struct mk_plugin *mk_worker_plugin_at(const struct mk_worker *worker, size_t i);
/** Writes the effective configuration, as `monkey -T` prints it. */
MK_API void mk_worker_print_config(const struct mk_worker *worker, struct mk_buf *out);

#ifdef __cplusplus
}
#endif

#endif
