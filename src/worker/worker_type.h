/* SPDX-License-Identifier: Apache-2.0 */
/* Worker internals. */
#ifndef MK_WORKER_WORKER_TYPE_H
#define MK_WORKER_WORKER_TYPE_H

#include "connection/acceptor.h"
#include "event/post_queue.h"
#include "event/thread_pool.h"
#include "logs/accesslog.h"
#include "logs/logwriter.h"
#include "setup/config_generation.h"
#include "worker/scoreboard.h"
#include "worker/subprocess_type.h"

/* Message queue for one worker index, or for this worker itself. */
struct mk_worker_message_queue {
    struct mk_worker *worker;
    struct mk_buf records;             /* not sent yet */
    struct mk_fd_watch writable_watch; /* watches the socket until it is writable */
    bool waits;                        /* `writable_watch` is registered */
    uint64_t warned_ms;                /* when lost messages were last logged; 0: never */
};

struct mk_worker_messages {
    struct mk_worker_message_queue
        *queues; /* one per worker index, and one for ourselves; NULL: not needed yet */
    struct mk_fd_watch arrival;
    struct mk_loop_task send, hear;
    bool sends, hears; /* the task `send` or `hear` is queued in the loop */
    bool replaced;     /* another worker receives the messages for our index */
};

enum { MK_WORKER_RECENT_PLUGINS = 8 };

struct mk_worker {
    struct mk_config_generation *generation;
    unsigned index, count;
    struct mk_scoreboard scoreboard;
    uint64_t *busy_cells;  /* histogram of the iterations; NULL: none */
    uint32_t slow_loop_ms; /* logs iterations that take at least this long; 0: none */
    struct mk_conn_manager_limits limits;
    struct mk_web_ctx web;
    struct mk_request_observer observer;
    struct mk_conn_manager manager;
    struct mk_access_clock clock;
    struct mk_logwriter *logs;   /* indexed by log */
    struct mk_timer flush_timer; /* runs while a log has pending lines */
    struct mk_timer drain_timer;
    struct mk_acceptor *acceptors;       /* list */
    struct mk_acceptor *acceptors_owned; /* memory of the acceptors that the worker allocated itself */
    uint32_t holds_accepting;            /* accepting is paused by these: enum mk_worker_hold */
    enum mk_rejection rejection;         /* of new connections */
    struct mk_thread_pool thread_pool;   /* for plugins, so that a slow plugin cannot delay file reads */
    struct mk_post_queue inbox;
    void (*on_wakeup)(struct mk_worker *w); /* called after a wakeup's posted calls; may be NULL */
    /* Called when a log is full, to rotate it. Returns 0 or a negative errno value. NULL: the master is asked
     * to rotate the log. */
    mk_err (*on_full)(struct mk_worker *w, const struct mk_logfile *log);
    struct mk_subprocesses children;
    int master_fd; /* our end of the control channel, owned by the process; -1: no master */
    struct mk_worker_messages mail;
    unsigned n_refs; /* references held by plugins; draining ends only when there are none */
    bool draining;
    bool ending;      /* no more messages are delivered to this worker */
    size_t n_started; /* number of started plugins, in order */
    void *plugin_data[MK_PLUGINS_MAX];
    /* Indexes of plugins whose data was read, by hash of the plugin's address; any thread may read data. */
    uint8_t recent_plugins[MK_WORKER_RECENT_PLUGINS];
    /* last: mk_loop_init() does not touch most of the timer wheel, so these pages at the end of the struct
     * take no memory until they are used */
    struct mk_loop loop;
};

#endif
