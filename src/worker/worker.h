/* SPDX-License-Identifier: Apache-2.0 */
/* One loop that serves one generation. Knows nothing of processes: it runs wherever its loop runs. */
#ifndef MK_WORKER_WORKER_H
#define MK_WORKER_WORKER_H

#include "worker/worker_type.h"

/* A socket to accept from. */
struct mk_worker_socket {
    int fd;
    bool tls, http2;
    const struct mk_vhosts *hosts; /* the hosts served here; NULL: those without a Listen of their own */
};

struct mk_worker_options {
    struct mk_config_generation *generation;
    unsigned index, workers; /* its index among the workers that share the server's limits */
    struct mk_counters *counters;
    struct mk_scoreboard scoreboard;          /* of all processes; none without a master */
    struct mk_log *log;                       /* no other thread writes to it */
    const struct mk_worker_socket *listeners; /* owned by the caller */
    size_t n_listeners;
    const int *master_fd;             /* the worker's end of the control channel; NULL: there is no master */
    const struct mk_spawner *spawner; /* the worker takes ownership; NULL: none */
};

mk_err mk_worker_init(struct mk_worker *w, const struct mk_worker_options *o) MK_MUST_USE;
void mk_worker_fini(struct mk_worker *w);

/* Serves until it is stopped, or drained. */
mk_err mk_worker_run(struct mk_worker *w) MK_MUST_USE;

/* Stops accepting, answers the open requests, and stops when the last connection is closed and no plugin
 * holds it, or the time is over (0: no limit). Idle connections may still send one request: closing them now
 * could lose one in flight. With an heir, a worker that accepts from the same sockets, queued connections
 * stay in the queues; without one they are accepted first. */
void mk_worker_drain(struct mk_worker *w, bool has_successor, uint32_t span_ms);
/* Stops at the end of this turn of the loop. */
void mk_worker_stop(struct mk_worker *w);

/* Call worker_start of the plugins in order until one fails, and worker_stop of the started ones. */
mk_err mk_worker_start_plugins(struct mk_worker *w) MK_MUST_USE;
void mk_worker_stop_plugins(struct mk_worker *w);
/* Tells those that want to know. */
void mk_worker_drain_plugins(struct mk_worker *w);
/* Another worker has ended. */
void mk_worker_notify_exit(struct mk_worker *w);

/* It calls something that may block its loop: reports of the watchdog and of crashes name it in place of a
 * request. `of` is the name of a plugin, or "". */
void mk_worker_set_activity(struct mk_worker *w, const char *what, const char *of);

void mk_worker_flush_logs(struct mk_worker *w);

#endif
