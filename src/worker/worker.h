/* SPDX-License-Identifier: Apache-2.0 */
/* Worker: one event loop that serves one generation of the configuration. It need not have a process of its
 * own: it can also run in a thread. */
#ifndef MK_WORKER_WORKER_H
#define MK_WORKER_WORKER_H

#include "worker/worker_type.h"

/* A socket to accept from. */
struct mk_worker_socket {
    int fd;
    bool tls, http2;
    const struct mk_vhosts *hosts; /* virtual hosts of this socket; NULL: hosts without a Listen */
};

struct mk_worker_options {
    struct mk_config_generation *generation;
    unsigned index, workers; /* index among the workers that share the server's limits, and their number */
    struct mk_counters *counters;
    struct mk_scoreboard scoreboard;          /* shared by all processes; empty without a master */
    struct mk_log *log;                       /* no other thread writes to it */
    const struct mk_worker_socket *listeners; /* owned by the caller */
    size_t n_listeners;
    const int *master_fd;             /* the worker's end of the control channel; NULL: no master */
    const struct mk_spawner *spawner; /* the worker takes ownership; NULL: none */
    uint32_t slow_loop_ms;            /* logs iterations of the event loop that take at least this long; 0:
                                       * none */
};

mk_err mk_worker_init(struct mk_worker *w, const struct mk_worker_options *o) MK_MUST_USE;
void mk_worker_fini(struct mk_worker *w);

/* Starts accepting from another socket. The caller owns the memory of the acceptor, which must stay valid
 * until the worker has ended or mk_worker_remove_acceptor() permits freeing it. On error, the acceptor is not
 * used. */
mk_err mk_worker_add_acceptor(struct mk_worker *w, struct mk_acceptor *a,
                              const struct mk_worker_socket *socket) MK_MUST_USE;
/* Accepts the connections in the queue of the socket, then stops accepting from it. The memory of the
 * acceptor must stay valid until the end of the loop iteration. */
void mk_worker_remove_acceptor(struct mk_worker *w, struct mk_acceptor *a);

/* Serves until stopped or drained. */
mk_err mk_worker_run(struct mk_worker *w) MK_MUST_USE;

/* Drain: stops accepting, finishes open requests, and stops when the last connection is closed and no plugin
 * holds a reference, or after `span_ms` (0: no limit). Clients of idle connections may still send one
 * request: closing these connections now could lose a request in flight. Queued connections are left to a
 * successor that accepts from the same sockets; without one, they are accepted first. */
void mk_worker_drain(struct mk_worker *w, bool has_successor, uint32_t span_ms);
/* The parts of the program that may pause accepting. */
enum mk_worker_hold { MK_WORKER_HOLD_PROGRAM = 1, MK_WORKER_HOLD_PLUGIN = 2 };
/* Pauses accepting connections, or resumes it unless others pause it too. */
void mk_worker_hold_accepting(struct mk_worker *w, enum mk_worker_hold by, bool held);
/* Stops the worker at the end of this loop iteration. */
void mk_worker_stop(struct mk_worker *w);

/* Calls worker_start() of the plugins in order until one fails. mk_worker_stop_plugins() calls worker_stop()
 * of the plugins that were started. */
mk_err mk_worker_start_plugins(struct mk_worker *w) MK_MUST_USE;
void mk_worker_stop_plugins(struct mk_worker *w);
/* Calls worker_cancel() of the plugins that were started. */
void mk_worker_cancel_plugins(struct mk_worker *w);
/* Calls worker_drain() of the plugins. */
void mk_worker_drain_plugins(struct mk_worker *w);
/* Calls on_release_memory() of the plugins. */
void mk_worker_release_memory_of_plugins(struct mk_worker *w, unsigned what);
/* Call it when another worker has exited: calls on_worker_exit() of the plugins. */
void mk_worker_notify_exit(struct mk_worker *w);

/* Call it before calling code that may block the loop: the watchdog and crash reports show `what` instead of
 * a request. `of`: name of a plugin, or "". */
void mk_worker_set_activity(struct mk_worker *w, const char *what, const char *of);

void mk_worker_flush_logs(struct mk_worker *w);

#endif
