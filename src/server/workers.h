/* SPDX-License-Identifier: Apache-2.0 */
/* The worker processes as the master sees them: starting, watching, replacing and ending them. */
#ifndef MK_SERVER_WORKERS_H
#define MK_SERVER_WORKERS_H

#include "server/control_queue.h"
#include "server/worker_process.h"

enum { MK_WORKERS_MAX = 1024 }; /* including the ending ones */

struct mk_workers;

struct mk_worker_slot {
    struct mk_fd_watch control;
    struct mk_workers *all;
    struct mk_scoreboard_slot *place;
    pid_t pid; /* 0: the slot is free */
    int control_fd;
    unsigned index;
    const struct mk_config_generation *generation;
    uint64_t serial; /* the generation's, which may have been freed */
    struct mk_control_queue outbox;
    uint64_t started_ms;
    uint64_t pulse;      /* of its loop, when it was last seen to change, */
    uint64_t changed_ms; /* and when that was */
    bool stuck;          /* and that was reported */
    bool ready;
    bool leaving; /* got the order to end: its exit is expected */
    bool awaited; /* got the order to end, and has not reported yet that it accepts no more */
};

/* Restarts a worker of the current set that died, after a pause that grows with repeated early deaths. */
struct mk_worker_restart {
    struct mk_timer timer;
    struct mk_workers *all;
    unsigned index;
    unsigned young_deaths;
};

struct mk_workers {
    struct mk_loop *loop;
    struct mk_errorlog *log;
    struct mk_listeners *listeners;
    struct mk_config_generation *generation; /* of the current set */
    unsigned wanted;                         /* size of the current set */
    pid_t master;
    bool silent;                        /* of a daemon */
    struct mk_scoreboard scoreboard;    /* shared memory, one per slot */
    struct mk_worker_slot *procs;       /* MK_WORKERS_MAX */
    struct mk_worker_restart *revivals; /* one per index */
    uint64_t n_generations;             /* served so far */
    bool ending;
    bool early_death; /* one of the current set died before it served; for on_change to take note of */
    void (*on_child)(struct mk_workers *w);  /* in a new worker: releases what is only the master's */
    void (*on_change)(struct mk_workers *w); /* a worker became ready, stopped accepting, or died */
    void (*on_other_child)(struct mk_workers *w, pid_t pid,
                           int status); /* a child that is no worker has ended */
    /* Requests of a worker to the master. */
    void (*on_worker_request)(struct mk_workers *w, const struct mk_control_message *m);
};

mk_err mk_workers_init(struct mk_workers *w, struct mk_loop *loop, struct mk_errorlog *log,
                       struct mk_listeners *listeners) MK_MUST_USE;
void mk_workers_fini(struct mk_workers *w);

/* Starts a full set of workers for the generation, beside the running ones. */
mk_err mk_workers_start(struct mk_workers *w, struct mk_config_generation *g) MK_MUST_USE;
/* Returns to a generation whose workers got no order to end, and restarts those that died meanwhile. */
void mk_workers_return_to_config(struct mk_workers *w, struct mk_config_generation *g);
/* How many workers of the generation exist and how many of them serve, without those that got the order
 * to end. */
unsigned mk_workers_count(const struct mk_workers *w, const struct mk_config_generation *g, bool ready);
unsigned mk_workers_count_all(const struct mk_workers *w);
/* Tells the workers of one generation, or (NULL) all workers, to end: with that signal or, if others will
 * accept their queued connections, with a message. */
void mk_workers_stop(struct mk_workers *w, const struct mk_config_generation *g, int signal,
                     bool has_successor);
/* Those that have not served yet have nothing to finish, and may hang. After mk_workers_stop(). */
void mk_workers_kill_starting(struct mk_workers *w);
/* True if a worker that the last mk_workers_stop() ended may still accept. */
bool mk_workers_may_still_accept(const struct mk_workers *w);
/* Reaps ended processes. */
void mk_workers_reap(struct mk_workers *w);
/* Sends a message to all workers, including the ending ones. */
void mk_workers_broadcast(struct mk_workers *w, const struct mk_control_message *m);

#endif
