/* SPDX-License-Identifier: Apache-2.0 */
/* The worker processes as the master sees them: starting, watching, replacing, telling them to end. */
#ifndef MK_SERVER_WORKERS_H
#define MK_SERVER_WORKERS_H

#include "server/outbox.h"
#include "server/process.h"

enum { MK_WORKERS_MAX = 1024 }; /* those that end included */

struct mk_workers;

struct mk_worker_proc {
    struct mk_watch control;
    struct mk_workers *all;
    struct mk_place *place;
    pid_t pid; /* 0: the slot is free */
    int control_fd;
    unsigned index;
    const struct mk_generation *generation;
    uint64_t serial; /* the generation's, which may be gone by now */
    struct mk_outbox outbox;
    uint64_t complained_ms; /* when it was said that it does not take its messages; 0: never */
    uint64_t started_ms;
    bool ready;
    bool leaving; /* was told to end: its death is no news */
    bool awaited; /* was told to end, and did not say yet that it accepts no more */
};

/* When a worker of the current set died: its index comes back after a pause that grows while it dies young.
 */
struct mk_revival {
    struct mk_timer timer;
    struct mk_workers *all;
    unsigned index;
    unsigned young_deaths;
};

struct mk_workers {
    struct mk_loop *loop;
    struct mk_errorlog *log;
    struct mk_listeners *listeners;
    struct mk_generation *generation; /* of the current set */
    unsigned wanted;                  /* size of the current set */
    pid_t master;
    bool silent;                  /* of a daemon */
    struct mk_places places;      /* shared memory, one a slot */
    struct mk_worker_proc *procs; /* MK_WORKERS_MAX */
    struct mk_revival *revivals;  /* one an index */
    uint64_t n_generations;       /* that have been served */
    bool ending;
    bool early_death; /* one of the current set died before it served; for on_change to take note of */
    void (*on_child)(struct mk_workers *w);  /* in a new worker: what is the master's alone is to be let go */
    void (*on_change)(struct mk_workers *w); /* somebody became ready, accepts no more, or died */
    /* A worker wants something of the master. */
    void (*on_ask)(struct mk_workers *w, const struct mk_control_message *m);
    void *owner;
};

mk_err mk_workers_init(struct mk_workers *w, struct mk_loop *loop, struct mk_errorlog *log,
                       struct mk_listeners *listeners) MK_MUST_USE;
void mk_workers_fini(struct mk_workers *w);

/* Starts a whole set that serves the generation, beside the ones that run. */
mk_err mk_workers_start(struct mk_workers *w, struct mk_generation *g) MK_MUST_USE;
/* Back to a generation whose set was never told to end: those of it that died meanwhile are started again. */
void mk_workers_return(struct mk_workers *w, struct mk_generation *g);
/* How many of that generation are there, and how many of them serve; not those that were told to end. */
unsigned mk_workers_count(const struct mk_workers *w, const struct mk_generation *g, bool ready);
unsigned mk_workers_count_all(const struct mk_workers *w);
/* Tells all of one generation, or (NULL) all there are, to end: with that signal, or, when somebody else will
 * accept what waits in their queues, with a message. */
void mk_workers_end(struct mk_workers *w, const struct mk_generation *g, int signal, bool has_heir);
/* May somebody whom the last mk_workers_end told to end still accept? */
bool mk_workers_accept_still(const struct mk_workers *w);
/* Takes the dead from the system. */
void mk_workers_reap(struct mk_workers *w);
/* A message for all of them, those that end included. */
void mk_workers_tell(struct mk_workers *w, const struct mk_control_message *m);

#endif
