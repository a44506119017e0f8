/* SPDX-License-Identifier: Apache-2.0 */
/* Worker processes in the master: starting, monitoring, replacing and stopping them. */
#ifndef MK_SERVER_WORKERS_H
#define MK_SERVER_WORKERS_H

#include <monkey/state_machine.h>

#include "base/arena.h"
#include "server/control_queue.h"
#include "server/lifecycle.h"
#include "server/worker_process.h"

enum { MK_WORKERS_MAX = 1024 }; /* including exiting workers */

struct mk_workers;

enum mk_worker_state {
    MK_WORKER_FREE,     /* the slot has no process */
    MK_WORKER_ACTIVE,   /* starts or serves; its exit is unexpected */
    MK_WORKER_STOPPING, /* the master has requested its shutdown; it may still accept connections */
    MK_WORKER_DRAINING, /* accepts no more connections */
    MK_WORKER_STATES
};

extern const struct mk_state_machine mk_worker_machine;

struct mk_worker_slot {
    struct mk_fd_watch control;
    struct mk_workers *all;
    struct mk_scoreboard_slot *slot;
    struct mk_state state; /* enum mk_worker_state */
    bool ready;            /* has reported that it serves; also while it shuts down */
    pid_t pid;
    int control_fd;
    unsigned index;
    const struct mk_config_generation *generation;
    uint64_t serial; /* serial of the generation, which may have been freed */
    struct mk_control_queue outbox;
    uint64_t started_ms;
    uint64_t pulse;           /* last known pulse of the worker's loop */
    uint64_t changed_ms;      /* when the pulse last changed, or the loop was waiting */
    bool stuck;               /* reported as blocked */
    bool replacement_delayed; /* its request for a replacement came too early, and this was logged */
};

/* Restarts a worker of the current set that has died. The delay grows with consecutive early deaths. */
struct mk_worker_restart {
    struct mk_timer timer;
    struct mk_workers *all;
    unsigned index;
    unsigned young_deaths;
    struct mk_lifecycle_replacements replacements;
};

struct mk_workers {
    struct mk_loop *loop;
    struct mk_errorlog *log;
    struct mk_listeners *listeners;
    struct mk_config_generation *generation; /* generation of the current set */
    unsigned wanted;                         /* size of the current set */
    pid_t master;
    bool silent;                     /* daemon */
    struct mk_scoreboard scoreboard; /* shared memory, one slot per worker */
    /* Slots and restarts are allocated when they are first needed: most servers need only a few. */
    struct mk_arena memory;
    struct mk_worker_slot **procs;       /* slots in use, and free slots of exited workers */
    size_t n_procs;                      /* at most MK_WORKERS_MAX */
    struct mk_worker_restart **restarts; /* one per index */
    size_t n_restarts;
    uint64_t n_generations; /* number of generations so far */
    bool ending;
    bool early_death; /* a worker of the current set died before it served; on_change() clears this */
    void (*on_child)(struct mk_workers *w);  /* called in a new worker; must release the master's resources */
    void (*on_change)(struct mk_workers *w); /* a worker became ready, stopped accepting, or died */
    void (*on_other_child)(struct mk_workers *w, pid_t pid,
                           int status); /* a child that is not a worker has exited */
    /* Handles a worker's request to the master. */
    void (*on_worker_request)(struct mk_workers *w, const struct mk_control_message *m);
};

mk_err mk_workers_init(struct mk_workers *w, struct mk_loop *loop, struct mk_errorlog *log,
                       struct mk_listeners *listeners) MK_MUST_USE;
void mk_workers_fini(struct mk_workers *w);

/* Starts a full set of workers for the generation, in addition to the running workers. */
mk_err mk_workers_start(struct mk_workers *w, struct mk_config_generation *g) MK_MUST_USE;
/* Returns to a generation whose workers the master has not told to shut down, and restarts workers that died
 * in the meantime. */
void mk_workers_return_to_config(struct mk_workers *w, struct mk_config_generation *g);
/* Counts the workers of the generation, except draining workers. If `only_ready`, counts only workers that
 * serve. */
unsigned mk_workers_count(const struct mk_workers *w, const struct mk_config_generation *g, bool only_ready);
unsigned mk_workers_count_all(const struct mk_workers *w);
/* Tells the workers of one generation, or (NULL) all workers, to shut down. Sends `signal` or, if
 * `has_successor`, a message: other workers will accept the queued connections. */
void mk_workers_stop(struct mk_workers *w, const struct mk_config_generation *g, int signal,
                     bool has_successor);
/* Kills workers that have not served yet: they may hang, and have nothing to finish. Call it after
 * mk_workers_stop(). */
void mk_workers_kill_starting(struct mk_workers *w);
/* May a stopping worker of the generation still accept connections? */
bool mk_workers_may_still_accept(const struct mk_workers *w, const struct mk_config_generation *g);
/* Reaps exited processes. */
void mk_workers_reap(struct mk_workers *w);
/* Sends a message to all workers, including exiting workers. */
void mk_workers_broadcast(struct mk_workers *w, const struct mk_control_message *m);

#endif
