/* SPDX-License-Identifier: Apache-2.0 */
/* A worker from inside. */
#ifndef MK_WORKER_WORKER_TYPE_H
#define MK_WORKER_WORKER_TYPE_H

#include "logs/accesslog.h"
#include "logs/logwriter.h"
#include "net/post_queue.h"
#include "net/thread_pool.h"
#include "proto/acceptor.h"
#include "setup/config_generation.h"
#include "worker/scoreboard.h"
#include "worker/subprocess_type.h"

/* Messages to the worker of one place, or to ourselves. */
struct mk_worker_message_queue {
    struct mk_worker *worker;
    struct mk_buf records;   /* not sent yet */
    struct mk_fd_watch room; /* in its mailbox */
    bool waits;              /* for that */
    uint64_t complained_ms;  /* when lost messages were last reported; 0: never */
};

struct mk_worker_messages {
    struct mk_worker_message_queue
        *queues; /* one for each place, then that to ourselves; NULL: none was needed yet */
    struct mk_fd_watch arrival;
    struct mk_loop_task send, hear;
    bool sends, hears; /* these are in the lists of the loop */
    bool replaced;     /* another worker receives what is for our place */
};

struct mk_worker {
    struct mk_config_generation *generation;
    unsigned index, count;
    struct mk_scoreboard scoreboard;
    struct mk_loop loop;
    struct mk_conn_manager_limits limits;
    struct mk_web_ctx web;
    struct mk_conn_manager service;
    struct mk_access_clock clock;
    struct mk_logwriter *logs;   /* by the index of the log */
    struct mk_timer flush_timer; /* runs while a log has pending lines */
    struct mk_timer drain_timer;
    struct mk_acceptor *acceptors;
    size_t n_acceptors;
    struct mk_thread_pool thread_pool; /* for plugins: a slow plugin must not delay files */
    struct mk_post_queue inbox;
    void (*on_wakeup)(struct mk_worker *w); /* its loop was rung; NULL: what was posted is all */
    /* A log has reached its size; its errno. NULL: the master is asked to rotate it. */
    mk_err (*on_full)(struct mk_worker *w, const struct mk_logfile *log);
    struct mk_subprocesses children;
    int master_fd; /* our end of the control channel, owned by the process; -1: there is no master */
    struct mk_worker_messages mail;
    unsigned n_refs; /* work of plugins that a worker which drains waits for */
    bool draining;
    bool ending;      /* no more thread work or messages to ourselves are started */
    size_t n_started; /* plugins, in their order */
    void *plugin_data[MK_PLUGINS_MAX];
};

#endif
