/* SPDX-License-Identifier: Apache-2.0 */
/* Life cycle of the master as a pure state machine: events change the state, and mk_lifecycle_next_step()
 * returns the steps that follow, which the master executes. */
#ifndef MK_SERVER_LIFECYCLE_H
#define MK_SERVER_LIFECYCLE_H

#include <monkey/state_machine.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum mk_lifecycle_phase {
    MK_PHASE_PREPARING_FIRST, /* plugins of the first configuration prepare: no workers yet */
    MK_PHASE_STARTING,        /* the first workers are starting */
    MK_PHASE_SERVING,
    MK_PHASE_TRYING,       /* a trial process loads the new configuration */
    MK_PHASE_PREPARING,    /* plugins of the new configuration prepare */
    MK_PHASE_RELOADING,    /* workers of the new configuration are starting */
    MK_PHASE_HANDING_OVER, /* the new workers serve; the old workers are draining */
    MK_PHASE_ENDING,
    MK_PHASES
};

enum mk_lifecycle_step {
    MK_STEP_WAIT,           /* nothing to do before the next event */
    MK_STEP_START_FIRST,    /* start the first workers, then call mk_lifecycle_workers_started() */
    MK_STEP_SERVE,          /* announce that the first workers serve */
    MK_STEP_FAIL,           /* the first workers cannot serve: exit with an error */
    MK_STEP_START_TRIAL,    /* load the configuration in a trial process; mk_lifecycle_trial_done() follows */
    MK_STEP_LOAD,           /* load the configuration in the master, open its sockets, call
                   * mk_lifecycle_config_loaded(), then let plugins prepare */
    MK_STEP_START_NEW,      /* start the new workers, then call mk_lifecycle_workers_started() */
    MK_STEP_REJECT,         /* free the new configuration, if loaded, and keep the old configuration */
    MK_STEP_ABANDON,        /* the new workers cannot serve: kill them and keep the old configuration */
    MK_STEP_GIVE_UP_RELOAD, /* the reload takes too long: abort it in any phase and keep the old
                             * configuration; if `again` is set, a later reload replaces it */
    MK_STEP_HAND_OVER,      /* the new workers serve: tell the old workers to drain */
    MK_STEP_FINISH,         /* the old workers accept no more connections: report the end of the reload */
    MK_STEP_STOP,           /* the last worker has exited: leave the loop */
};

struct mk_lifecycle {
    struct mk_state phase;      /* enum mk_lifecycle_phase */
    enum mk_lifecycle_step due; /* step due after the last event, independent of the workers; MK_STEP_WAIT:
                                 * none */
    bool again;                 /* another reload was requested and has not begun */
    unsigned slow;              /* number of periods that the reload has taken */
    unsigned n_replaced;        /* number of consecutive reloads that later ones have replaced */
    bool late;                  /* the old workers have not confirmed in time that they stopped accepting */
};

extern const struct mk_state_machine mk_lifecycle_machine;

/* Numbers of workers, as counted by the master. */
struct mk_lifecycle_workers {
    unsigned wanted, there, ready;  /* newest set: number of configured, existing and serving workers */
    unsigned old_wanted, old_there; /* the same for the set that serves during a reload */
    unsigned all;                   /* number of workers in all sets, including exiting workers */
    bool accept_still;              /* a draining worker may still accept connections */
};

/* ---- Events ---- */

/* Requests a reload (by the administrator, a plugin or a changed file). A request during a reload is kept
 * until that reload is over; if the reload takes long, the request replaces it. Each reload may take twice as long as
 * the replaced one, so that frequent requests do not prevent a reload that is only slow. */
void mk_lifecycle_request_reload(struct mk_lifecycle *l);
/* Call it when the trial process has loaded the configuration, or failed. */
void mk_lifecycle_trial_done(struct mk_lifecycle *l, bool ok);
void mk_lifecycle_config_loaded(struct mk_lifecycle *l, bool ok);
void mk_lifecycle_plugins_prepared(struct mk_lifecycle *l, bool ok);
void mk_lifecycle_workers_started(struct mk_lifecycle *l, bool ok);
/* Call it when a worker of the newest set has died before it served. */
void mk_lifecycle_worker_died_early(struct mk_lifecycle *l);
/* Call it after each period that the reload has taken: the first reload may be replaced after one. */
void mk_lifecycle_mark_reload_slow(struct mk_lifecycle *l);
/* Call it when the old workers have had enough time to stop accepting. */
void mk_lifecycle_old_workers_late(struct mk_lifecycle *l);

struct mk_lifecycle_shutdown {
    bool is_first;       /* first shutdown request: determines the exit code */
    bool kills_starting; /* kill workers that have not served yet: they may hang, and have nothing to
                          * finish */
    bool has_limit;      /* kill workers that do not exit in time */
};

/* Handles a shutdown request: immediate if `at_once`, or else after all requests are finished. */
struct mk_lifecycle_shutdown mk_lifecycle_begin_shutdown(struct mk_lifecycle *l, bool at_once);

/* ---- The next step ---- */

/* Returns the next step and changes the state: call this until the result is MK_STEP_WAIT or MK_STEP_STOP. */
enum mk_lifecycle_step mk_lifecycle_next_step(struct mk_lifecycle *l, const struct mk_lifecycle_workers *w);

/* May an upgrade begin? Only while no other change is in progress. */
bool mk_lifecycle_may_upgrade(const struct mk_lifecycle *l);

/* Returns the delay in ms before an exited worker is replaced. There is no delay after a long life or the
 * first early death; after that, the delay grows with each consecutive early death, counted in
 * *young_deaths. */
uint32_t mk_lifecycle_restart_pause(unsigned *young_deaths, uint64_t age_ms);

/* Replacements that the workers of one index have requested. */
struct mk_lifecycle_replacements {
    uint64_t last_ms; /* time of the last replacement */
    bool any;
};

/* A worker requests its replacement. Returns 0 and records the replacement if it may happen now, or the
 * remaining time in ms: at least 30 s lie between two replacements. The interval does not grow, because a worker that
 * requests its replacement serves badly until then. */
uint32_t mk_lifecycle_replacement_pause(struct mk_lifecycle_replacements *r, uint64_t now_ms);

#endif
