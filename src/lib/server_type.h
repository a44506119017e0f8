/* SPDX-License-Identifier: Apache-2.0 */
/* An embedded server. */
#ifndef MK_LIB_SERVER_TYPE_H
#define MK_LIB_SERVER_TYPE_H

#include <monkey/server.h>
#include <pthread.h>
#include <stdatomic.h>

#include "lib/app_routes.h"
#include "lib/config_builder.h"
#include "lib/worker_handle.h"
#include "logs/errorlog.h"
#include "worker/listeners.h"
#include "worker/worker.h"

enum mk_server_phase {
    MK_SERVER_SETTING_UP,
    MK_SERVER_STARTING, /* plugin functions are being called */
    MK_SERVER_RUNNING,
    MK_SERVER_ENDED, /* or startup failed; only mk_server_free() is valid */
};

/* How the program runs the loops of the server. */
enum mk_server_run_mode { MK_SERVER_IN_CALLER, MK_SERVER_IN_THREADS, MK_SERVER_IN_STEPS };

/* A hook that runs when a worker ends, for resources that depend on the worker but are not part of the
 * library. */
struct mk_end_hook {
    struct mk_end_hook *next;
    void (*run)(struct mk_end_hook *h); /* may free the hook */
};

struct mk_live_listener;
struct mk_replaced_contexts;

/* One worker, and the thread that runs its loop. */
struct mk_lib_worker {
    struct mk_server *server;
    unsigned index;
    struct mk_worker worker;
    struct mk_errorlog log;
    struct mk_end_hook *end_hooks;          /* run when the worker and its connections have ended */
    struct mk_timer tickets;                /* in the first worker: rotates ticket keys */
    struct mk_worker_handle *worker_handle; /* for request references; NULL: there are none so far */
    pthread_t id;
    bool has_id;                /* `id` is one of our threads, to be joined */
    mk_err result;              /* error of startup, or of the loop */
    bool is_ready;              /* serving, or failed to start; protected by the server's lock */
    atomic_bool serves;         /* the loop of the worker may be woken */
    int64_t stop_at;            /* the stop deadline last given to the worker */
    bool has_drained;           /* the worker accepts no more connections */
    unsigned listeners_version; /* the value of the server's listeners_version that the worker has applied */
    bool has_listeners;         /* the worker accepts from all its listeners */
    struct mk_timer listen_retry; /* tries again to start accepting */
    atomic_bool is_in;            /* the thread `owner` is inside a function of the server */
    pthread_t owner;              /* the thread that has set is_in; stored before is_in */
};

/* Values of `stop_at`: the mk_clock_ms() time at which draining ends, or one of these. The smallest one
 * wins. */
#define MK_SERVER_STOP_AT_ONCE       INT64_C(0)
#define MK_SERVER_STOP_NO_DEADLINE   (INT64_MAX - 1)
#define MK_SERVER_STOP_NOT_REQUESTED INT64_MAX

struct mk_server {
    struct mk_server_options options;
    struct mk_buf error_text;
    struct mk_config_builder lines;
    /* NULL while the program has set only what needs no reader: routes, listeners, certificates, filters */
    const struct mk_config_reader *reader;
    char *path; /* path given to mk_server_load_config(); NULL: none */
    const struct mk_plugin *plugins[MK_PLUGINS_MAX];
    struct mk_embedding embedding;
    struct mk_app_routes program;
    struct mk_listeners listeners;         /* sockets opened before the server starts */
    struct mk_live_listener *live;         /* see live_listeners.h; protected by the lock */
    atomic_uint listeners_version;         /* number of changes of `live` */
    struct mk_replaced_contexts *replaced; /* TLS contexts to free with the server; protected by `changing` */
    pthread_mutex_t changing; /* serializes changes of listeners and certificates; locked before `lock` */
    struct mk_config_generation *generation;
    struct mk_scoreboard scoreboard;
    struct mk_lib_worker *workers;
    atomic_uint n_workers; /* length of `workers`; set when `workers` is complete */
    enum mk_server_run_mode run_mode;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum mk_server_phase phase; /* protected by the lock once running */
    unsigned n_draining;        /* number of threads that accept no more connections; protected by the lock */
    atomic_bool is_complaining; /* on_log is reporting a misuse; other misuses are not reported meanwhile */
    atomic_bool is_stepping;    /* some thread is in mk_server_step() */
    _Atomic int64_t stop_at;    /* earliest deadline of all mk_server_stop() calls */
    atomic_uint n_waking;       /* number of threads that are waking loops; no loop is freed until it is 0 */
};

#endif
