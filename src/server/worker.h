/* SPDX-License-Identifier: Apache-2.0 */
/* One loop that serves one generation. Knows nothing of processes: it runs wherever its loop is turned. */
#ifndef MK_SERVER_WORKER_H
#define MK_SERVER_WORKER_H

#include "net/inbox.h"
#include "proto/accept.h"
#include "server/accesslog.h"
#include "server/child.h"
#include "server/generation.h"
#include "server/places.h"

/* The line to the master. */
struct mk_bus {
    int master_fd; /* -1: there is none */
    struct mk_task task;
    struct mk_note *notes, *last_note; /* to ourselves */
};

struct mk_worker {
    struct mk_generation *generation;
    unsigned index, count;
    struct mk_places places;
    struct mk_loop loop;
    struct mk_limits limits;
    struct mk_web web;
    struct mk_service service;
    struct mk_access_clock clock;
    struct mk_timer flush_timer; /* runs while a log has lines to write */
    struct mk_timer drain_timer;
    struct mk_acceptor *acceptors;
    size_t n_acceptors;
    struct mk_helper aside; /* works for plugins: a slow one must not keep files waiting */
    unsigned n_aside;
    struct mk_inbox inbox;
    struct mk_children children;
    struct mk_bus bus;
    bool draining;
    bool ending;      /* nothing that takes time is begun any more */
    size_t n_started; /* plugins, in their order */
    void *plugin_data[MK_PLUGINS_MAX];
};

/* A socket to accept from. */
struct mk_worker_socket {
    int fd;
    bool tls, http2;
};

struct mk_worker_options {
    struct mk_generation *generation;
    unsigned index, workers; /* which one of how many that share the limits of the server */
    struct mk_counters *counters;
    struct mk_places places; /* of all processes; none where there is no master */
    struct mk_log *log;
    const struct mk_worker_socket *listeners; /* they stay the caller's */
    size_t n_listeners;
    const int *master_fd;             /* the worker's end of the control channel; NULL: there is no master */
    const struct mk_spawner *spawner; /* becomes the worker's; NULL: there is none */
};

mk_err mk_worker_init(struct mk_worker *w, const struct mk_worker_options *o) MK_MUST_USE;
void mk_worker_fini(struct mk_worker *w);

/* Serves until it is stopped, or drained. */
mk_err mk_worker_run(struct mk_worker *w) MK_MUST_USE;

/* Accepts no more, answers what has been asked, and stops when the last connection is closed or DrainTimeout
 * is over. Idle connections may still ask once: closing them now could lose a request that is on its way.
 * What waits in the queues of its sockets is left to an heir, who accepts from the same ones; without an heir
 * it is taken first. */
void mk_worker_drain(struct mk_worker *w, bool has_heir);
/* Stops at the end of this turn. */
void mk_worker_stop(struct mk_worker *w);

/* Calls worker_start of the plugins, one after the other until one cannot, and worker_stop of those that did.
 */
mk_err mk_worker_start_plugins(struct mk_worker *w) MK_MUST_USE;
void mk_worker_stop_plugins(struct mk_worker *w);

void mk_worker_flush_logs(struct mk_worker *w);

#endif
