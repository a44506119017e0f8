/* SPDX-License-Identifier: Apache-2.0 */
/* The process that serves: its clock and data, waiting, the other workers, what can be known of them. */
#ifndef MONKEY_WORKER_H
#define MONKEY_WORKER_H

#include <monkey/access_record.h>
#include <monkey/addr.h>
#include <monkey/buf.h>
#include <monkey/log.h>
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
 * One worker: one event loop, which serves the connections it took. Everything in this file may be called
 * only in the loop's own thread, from hooks, handlers, sources and the callbacks below, unless it says
 * otherwise. Nothing that is called from the loop may block.
 */
struct mk_worker;

/** Which of the workers it is, from 0, and how many there are. */
MK_API unsigned mk_worker_index(const struct mk_worker *w);
MK_API unsigned mk_worker_count(const struct mk_worker *w);
/** The clock of the loop, read once a turn: milliseconds from somewhere, and seconds since 1970. */
MK_API uint64_t mk_worker_now_ms(const struct mk_worker *w);
MK_API int64_t mk_worker_now(const struct mk_worker *w);
/** Into the error log of the server. Control characters are replaced. */
MK_API void mk_worker_log(struct mk_worker *w, enum mk_log_level level, const char *fmt, ...)
    MK_API_PRINTF(3, 4);
/** One pointer for each plugin; NULL at first. Set it in worker_start, free what it leads to in worker_stop.
 */
MK_API void mk_worker_set_data(struct mk_worker *w, const struct mk_plugin *plugin, void *data);
MK_API void *mk_worker_data(const struct mk_worker *w, const struct mk_plugin *plugin);

/* ---- Waiting ---- */

/** A watched descriptor. */
struct mk_watcher;

/** Events of a descriptor, and how they are reported. */
enum {
    MK_READABLE = 1,
    MK_WRITABLE = 2,
    MK_HUNG_UP = 4, /**< both directions have ended, or an error */
    MK_ENDED = 8,   /**< the peer sends no more; what it sent may still be there to be read */
    MK_LEVEL = 16 /**< in `events`: report as long as the descriptor is ready, not once when it becomes so */
};

/**
 * Calls on_ready(ctx, which) whenever the descriptor (non-blocking; the caller keeps it, and keeps it open
 * until after mk_watcher_free()) becomes ready for `events`: MK_READABLE, MK_WRITABLE, or neither. Edge
 * triggered: continue until -EAGAIN, or until a read that was shorter than asked for (of a socket; unless
 * MK_ENDED came: then until 0). With MK_LEVEL, for libraries that read what they like, it is called again
 * for what is left. MK_HUNG_UP is always reported, together with all of `events`, because there may be input
 * left; MK_ENDED comes with MK_READABLE. NULL: no memory, a descriptor that cannot be watched, or one that
 * already has a watcher.
 */
MK_API struct mk_watcher *mk_watcher_new(struct mk_worker *w, int fd, unsigned events,
                                         void (*on_ready)(void *ctx, unsigned which),
                                         void *ctx) MK_API_MUST_USE;
/** Other events from now on; what the descriptor is ready for now is reported again. 0 or a negated errno
 * value. */
MK_API int mk_watcher_change(struct mk_watcher *w, unsigned events);
/** Events go to another function from now on. */
MK_API void mk_watcher_set_callback(struct mk_watcher *w, void (*on_ready)(void *ctx, unsigned which),
                                    void *ctx);
/** Never calls again, not even for what has happened already; from any callback, its own too, and in
 * worker_stop at the latest. NULL is fine. */
MK_API void mk_watcher_free(struct mk_watcher *w);
/** The same, once the descriptor is closed: a closed one reports nothing, and this saves the system call that
 * would say so. Only if no other descriptor is of the same open file (dup(2), fork(2)). NULL is fine. */
MK_API void mk_watcher_free_closed(struct mk_watcher *w);

/** A call at the end of a turn of the loop. */
struct mk_deferred;

/**
 * A call at the end of a turn, which is not set. Use it to gather what the requests of a turn want to send to
 * one peer, and send it in one piece: a request to a database costs a fraction of what it costs alone. NULL
 * when memory is out. Free all of them in worker_stop at the latest.
 */
MK_API struct mk_deferred *mk_deferred_new(struct mk_worker *w, void (*on_end)(void *ctx),
                                           void *ctx) MK_API_MUST_USE;
/** Calls on_end(ctx) once, when all events and timers of this turn are handled and the requests that they
 * resumed have run. Set in an on_end, its own too, it is called at the end of the next turn. Setting it again
 * before that changes nothing. */
MK_API void mk_deferred_post(struct mk_deferred *t);
/** It is not called any more, and is freed; allowed in its own on_end. NULL is fine. */
MK_API void mk_deferred_free(struct mk_deferred *t);

/**
 * Runs work(ctx) in another thread, which may block, then done(ctx) in the loop. `work` must touch nothing of
 * the worker, the request or the configuration but what `ctx` holds, so `ctx` must live until `done`: not in
 * the memory of a request, which may end earlier. Both are called in any case, when the worker stops too: it
 * waits for them, before worker_stop. 0, or -EAGAIN when no thread can be had, too much (1024) waits, or the
 * worker stops: then neither is called. Threads are few: the whole worker has 4 of them for this.
 */
MK_API int mk_worker_offload(struct mk_worker *w, void (*work)(void *ctx), void (*done)(void *ctx),
                             void *ctx);

/** Threads of a plugin's own, for work that would keep the four above from others: a database that only
 * blocks, a slow computation. */
struct mk_thread_pool;

/**
 * At most `n` threads (1 to 64), which start when there is work, and at most `waiting_max` jobs that wait for
 * one. In worker_start or later. NULL: no memory, or `n` is out of range. Free it in worker_stop at the
 * latest.
 */
MK_API struct mk_thread_pool *mk_thread_pool_new(struct mk_worker *w, unsigned n,
                                                 unsigned waiting_max) MK_API_MUST_USE;
/** As mk_worker_offload(), in one of these threads. -EAGAIN: as many jobs as may wait are waiting, or no
 * thread can be had. */
MK_API int mk_thread_pool_submit(struct mk_thread_pool *t, void (*work)(void *ctx), void (*done)(void *ctx),
                                 void *ctx);
/** Waits for all jobs, calls done() for each, and frees the threads; not from a done() of theirs. NULL is
 * fine. */
MK_API void mk_thread_pool_free(struct mk_thread_pool *t);

/**
 * Calls fn(ctx) in the loop, soon, in the order of the calls. From any thread, as long as the worker lives: a
 * thread of yours must have ended when worker_stop returns. 0: it will be called, when the worker stops too,
 * before worker_stop. -ENOMEM, or -ESHUTDOWN (the worker stops): it will not.
 */
MK_API int mk_worker_post(struct mk_worker *w, void (*fn)(void *ctx), void *ctx);

/** While it is held, a worker that drains does not stop before `DrainTimeout` is over, though its connections
 * are closed: there is work which no connection waits for. Each call needs one of mk_worker_unref(). */
MK_API void mk_worker_ref(struct mk_worker *w);
MK_API void mk_worker_unref(struct mk_worker *w);

/* ---- The server around ---- */

/**
 * To the same plugin in other workers, whose on_message gets it. `to` is an index, or MK_TO_ALL (the sender
 * too). Only workers of the same configuration get it, never before this function has returned. At most
 * 32 KB.
 *
 * Messages leave at the end of the turn, all that are for one worker together, so many small ones cost
 * little. Those of one sender to another worker arrive in their order, but in no order with anything else. A
 * message arrives whole or is lost: if its receiver dies when it has taken it, or its sender before it has
 * left. What waits for a worker that ends is for the one that replaces it.
 *
 * Up to 1 MB waits in the sender for each receiver. Beyond that the result is -EAGAIN (try again later), but
 * with MK_TO_ALL the others get it and only a receiver that is so far behind misses it, unless that is the
 * sender itself. 0, -EMSGSIZE, -EINVAL (no such index), -EAGAIN, -ENOMEM, or -ENOTCONN where there is no
 * master: then only the sender gets it. On other errors than -ENOTCONN no worker gets it.
 */
MK_API int mk_worker_send(struct mk_worker *w, const struct mk_plugin *plugin, int to, mk_str message);
/** Every worker, as a receiver. */
enum { MK_TO_ALL = -1 };

/** Asks the master to reload the configuration, as HUP does. 0 or a negated errno value. */
MK_API int mk_worker_request_reload(struct mk_worker *w);
/** Results of all reloads since the server started, whatever triggered them. */
struct mk_reloads {
    uint64_t done;              /**< succeeded */
    uint64_t failed;            /**< failed: the old configuration stayed */
    int64_t done_at, failed_at; /**< the last of each: seconds since 1970; 0: there was none */
    bool last_failed;           /**< the last one that ended */
    bool under_way;             /**< one is in progress; a reload requested now follows it */
};
/** `why`, unless NULL, gets the messages of the last failed reload, up to 4 KB: lines as in the error log,
 * with file names and contents. */
MK_API void mk_worker_reloads(const struct mk_worker *w, struct mk_reloads *out, struct mk_buf *why);
/** What the error log holds, soon and in all workers, until a configuration is loaded. 0 or a negated errno
 * value. */
MK_API int mk_worker_set_log_level(struct mk_worker *w, enum mk_log_level level);
/** What this worker's error log holds now. */
MK_API enum mk_log_level mk_worker_log_level(const struct mk_worker *w);

/** Writes a line (its end is added) to a log of mk_config_log(): gathered, and written in blocks, at the
 * latest after a second. */
MK_API void mk_log_write(struct mk_worker *w, struct mk_logfile *log, mk_str line);
/** The same for a message, as the error log writes it: with time, level and process. Syslog and the journal add the
 * time and the process, and get the level as their priority. */
MK_API void mk_log_message(struct mk_worker *w, struct mk_logfile *log, enum mk_log_level level, mk_str text);

/** Counters of one worker process since it began. */
struct mk_worker_stats {
    int64_t pid;          /**< 0: the slot is unused; the counters are those of its last process */
    uint64_t started;     /**< seconds since 1970 */
    uint64_t accepted;    /**< connections taken */
    uint64_t dropped;     /**< connections refused: over a limit */
    uint64_t open;        /**< connections now */
    uint64_t requests;    /**< that are over */
    uint64_t by_class[6]; /**< responses by the first digit of their status; 0: none was begun */
    uint64_t by_ending[MK_OUTCOMES];
    uint64_t sent; /**< bytes that sockets took */
    bool leaving;  /**< it serves an older configuration and ends when its connections do */
};

/** The i-th process, those of other configurations included; false when there are no more. What it tells may
 * be a moment old. */
MK_API bool mk_worker_stats_at(const struct mk_worker *w, size_t i, struct mk_worker_stats *out);
/** The sum of what those have counted whose places others took: with all of the above, it is what the server
 * counted since it began. */
MK_API void mk_worker_stats_ended(const struct mk_worker *w, struct mk_worker_stats *out);
/** The i-th reason for which connections of HTTP/2 were ended by the server, as a word ("resets", "pings",
 * ...), and how often that was, in all workers since the server was started; false: there are no more. */
MK_API bool mk_worker_h2_error(const struct mk_worker *w, size_t i, const char **reason, uint64_t *n);
/** The statistics of the server; NULL: nothing is counted. */
MK_API struct mk_stat_registry *mk_worker_statistics(const struct mk_worker *w);
/** The cells of a series that this worker writes: see mk_stat_cells(). In worker_start or later. */
MK_API uint64_t *mk_worker_cells(const struct mk_worker *w, uint32_t series);
/** The process that the server began as, and when: seconds since 1970. */
MK_API int64_t mk_worker_master(const struct mk_worker *w);
MK_API int64_t mk_worker_server_started(const struct mk_worker *w);

/** One open connection of this worker. Texts are valid during the callback. */
struct mk_conn_info {
    struct mk_addr peer;
    const char *state;     /**< "idle", "head", "flow", "send", ... */
    uint32_t requests;     /**< that it has begun */
    mk_str method, target; /**< of the request under way; absent if there is none */
    mk_str host;
    uint64_t age_ms; /**< of that request */
};
/** Calls each() for every connection of this worker until it answers false. */
MK_API void mk_worker_each_conn(struct mk_worker *w, bool (*each)(const struct mk_conn_info *info, void *ctx),
                                void *ctx);

/** What the worker's cache of open files holds. */
struct mk_cache_info {
    size_t files, files_max, memory, memory_max;
};
MK_API void mk_worker_cache(const struct mk_worker *w, struct mk_cache_info *out);
/** Closes all cached files that are not in use. */
MK_API void mk_worker_cache_clear(struct mk_worker *w);

/** The i-th host, the default one included; NULL when there are no more. */
MK_API const struct mk_vhost *mk_worker_vhost_at(const struct mk_worker *w, size_t i);
/** The i-th plugin that was loaded, in the order of their hooks; NULL when there are no more. */
MK_API const struct mk_plugin *mk_worker_plugin_at(const struct mk_worker *w, size_t i);
/** The effective configuration, as `monkey -T` prints it. */
MK_API void mk_worker_print_config(const struct mk_worker *w, struct mk_buf *out);

#ifdef __cplusplus
}
#endif

#endif
