/* SPDX-License-Identifier: Apache-2.0 */
/* The life cycle of the master as a state machine without side effects: events change the state, and
 * mk_lifecycle_next_step() names the steps that follow from it. The master does them. */
#ifndef MK_SERVER_LIFECYCLE_H
#define MK_SERVER_LIFECYCLE_H

#include <monkey/sm.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum mk_lifecycle_phase {
    MK_PHASE_PREPARING_FIRST, /* the plugins of the first configuration prepare: there are no workers yet */
    MK_PHASE_STARTING,        /* the first workers are starting */
    MK_PHASE_SERVING,
    MK_PHASE_TRYING,       /* another process loads the new configuration */
    MK_PHASE_PREPARING,    /* the plugins of the new configuration prepare */
    MK_PHASE_RELOADING,    /* the workers of the new configuration are starting */
    MK_PHASE_HANDING_OVER, /* the new workers serve; the old workers are draining */
    MK_PHASE_ENDING,
    MK_PHASES
};

enum mk_lifecycle_step {
    MK_STEP_WAIT,        /* nothing follows before the next event */
    MK_STEP_START_FIRST, /* start the workers of the first configuration, then call mk_lifecycle_workers_started() */
    MK_STEP_SERVE,       /* announce that the first workers serve */
    MK_STEP_FAIL,        /* the first workers cannot serve: end with an error */
    MK_STEP_START_TRIAL, /* have another process load the configuration; mk_lifecycle_trial_done() follows */
    MK_STEP_LOAD, /* load it here and open its sockets, call mk_lifecycle_config_loaded(), then let plugins prepare */
    MK_STEP_START_NEW, /* start the workers of the new configuration, then call mk_lifecycle_workers_started() */
    MK_STEP_REJECT,    /* free the new configuration, if it was loaded, and keep the old one */
    MK_STEP_ABANDON,        /* the new workers cannot serve: kill them, and keep the old configuration */
    MK_STEP_GIVE_UP_RELOAD, /* the new configuration is too slow: give it up in any phase, and keep the old one */
    MK_STEP_HAND_OVER,      /* the new workers serve: tell the old ones to drain */
    MK_STEP_FINISH,         /* the old workers accept no more: report the end of the reload */
    MK_STEP_STOP,           /* the last worker has ended: leave the loop */
};

struct mk_lifecycle {
    struct mk_sm phase;         /* enum mk_lifecycle_phase */
    enum mk_lifecycle_step due; /* follows from the last event, whatever the workers do; MK_STEP_WAIT: none */
    bool again;                 /* a reload was requested, and has not begun */
    bool slow;                  /* the reload has taken so long that it gives way to the next one */
    bool late;                  /* the old workers have not reported in time that they accept no more */
};

extern const struct mk_sm_machine mk_lifecycle_machine;

/* The workers as the master counts them. */
struct mk_lifecycle_workers {
    unsigned wanted, there, ready;  /* of the newest set: its size, existing and serving ones */
    unsigned old_wanted, old_there; /* of the set that serves during a reload */
    unsigned all;                   /* of all sets, including those that are ending */
    bool accept_still;              /* a worker that got the order to drain may still accept connections */
};

/* ---- Events ---- */

/* The administrator, a plugin or a changed file requests a reload. A request during a reload is kept until
 * that is over. */
void mk_lifecycle_request_reload(struct mk_lifecycle *l);
/* The other process has loaded the configuration, or has failed. */
void mk_lifecycle_trial_done(struct mk_lifecycle *l, bool ok);
void mk_lifecycle_config_loaded(struct mk_lifecycle *l, bool ok);
void mk_lifecycle_plugins_prepared(struct mk_lifecycle *l, bool ok);
void mk_lifecycle_workers_started(struct mk_lifecycle *l, bool ok);
/* A worker of the newest set has ended before it served. */
void mk_lifecycle_worker_died_early(struct mk_lifecycle *l);
/* The reload takes long: from now on it gives way. */
void mk_lifecycle_reload_is_slow(struct mk_lifecycle *l);
/* The old workers had enough time to stop accepting. */
void mk_lifecycle_old_workers_late(struct mk_lifecycle *l);

struct mk_lifecycle_shutdown {
    bool is_first;       /* the first order to end: its exit code counts */
    bool kills_starting; /* workers that have not served yet may hang, and have nothing to finish */
    bool has_limit;      /* workers that do not end in time are killed */
};

/* The order to end: at once, or when all requests are finished. */
struct mk_lifecycle_shutdown mk_lifecycle_begin_shutdown(struct mk_lifecycle *l, bool at_once);

/* ---- What follows ---- */

/* The next step, as a change of the state: call it until it is MK_STEP_WAIT or MK_STEP_STOP. */
enum mk_lifecycle_step mk_lifecycle_next_step(struct mk_lifecycle *l, const struct mk_lifecycle_workers *w);

/* May a new program take the place of this one? Only while nothing else changes. */
bool mk_lifecycle_may_upgrade(const struct mk_lifecycle *l);

/* The pause in ms before a worker that has ended unexpectedly is replaced. There is none after a long life or
 * the first early death; then the pause grows with each early death in a row, which *young_deaths counts. */
uint32_t mk_lifecycle_restart_pause(unsigned *young_deaths, uint64_t age_ms);

#endif
