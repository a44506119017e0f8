/* SPDX-License-Identifier: Apache-2.0 */
/* The life cycle of a group as a state machine without side effects: events change the state, and name the signal or the
 * step that follows. The keeper does them. */
#ifndef ISOLATE_LIFECYCLE_H
#define ISOLATE_LIFECYCLE_H

#include <monkey/sm.h>

/* What the master tells the keeper. */
enum isolate_command {
    ISOLATE_START = 'S',
    ISOLATE_RELOAD = 'H',
    ISOLATE_END = 'Q', /* when no worker of the server in front needs it any more; the place goes with it */
    ISOLATE_STOP = 'T',
};

enum isolate_state {
    ISOLATE_DOWN,       /* there is no process; one starts at start_ms */
    ISOLATE_STARTING,   /* it does not serve yet */
    ISOLATE_SERVING,    /* its workers serve, or did */
    ISOLATE_RESTARTING, /* killed by the keeper, so that it starts again */
    ISOLATE_DRAINING,   /* it is to end, until end_ms */
    ISOLATE_ENDED,      /* and the keeper with it */
    ISOLATE_STATES
};

/* The order of the master that is to be answered. */
enum isolate_pending {
    ISOLATE_PENDING_START,
    ISOLATE_PENDING_RELOAD,
    ISOLATE_PENDING_RELOAD_BEGUN, /* the next READY=1 is about the new configuration */
    ISOLATE_PENDING_NONE,
    ISOLATE_PENDINGS
};

/* How long the group is needed. */
enum isolate_stay {
    ISOLATE_STAYS,
    ISOLATE_LEAVES,    /* until no worker needs it: the master has ended, or has another keeper */
    ISOLATE_IS_REMOVED /* the same, and its folder goes with it: the configuration does not have it any more */
};

struct isolate_lifecycle {
    struct mk_sm state, pending; /* enum isolate_state, _pending */
    enum isolate_stay stay;
    uint64_t start_ms, began_ms, end_ms;
    unsigned young_deaths; /* in a row */
};

extern const struct mk_sm_machine isolate_lifecycle_machine, isolate_lifecycle_pending_machine;

enum isolate_due {
    ISOLATE_DUE_NOTHING,
    ISOLATE_DUE_START,     /* then call isolate_lifecycle_started() */
    ISOLATE_DUE_KILL,      /* it has not ended in time */
    ISOLATE_DUE_KILL_START /* it has not begun to serve in time: kill it, call isolate_lifecycle_restart() */
};

/* What is due at that time. */
enum isolate_due isolate_lifecycle_due(const struct isolate_lifecycle *l, uint64_t now_ms);
/* The time until something is due, in ms; UINT64_MAX: nothing is. */
uint64_t isolate_lifecycle_timeout_ms(const struct isolate_lifecycle *l, uint64_t now_ms);

/* ---- Events ---- */

void isolate_lifecycle_started(struct isolate_lifecycle *l, uint64_t now_ms, bool ok);
/* READY=1. True: the pending order is done. */
bool isolate_lifecycle_ready(struct isolate_lifecycle *l);
/* RELOADING=1. */
void isolate_lifecycle_reloading(struct isolate_lifecycle *l);
/* It is to start again; the caller has killed it. */
void isolate_lifecycle_restart(struct isolate_lifecycle *l);
/* Its process has ended. True: unexpectedly. */
bool isolate_lifecycle_died(struct isolate_lifecycle *l, uint64_t now_ms);
/* The orders of the master, and that the group is not needed any more. The signal for its process; SIGKILL: for all of its
 * group of processes; 0: none. */
int isolate_lifecycle_reload(struct isolate_lifecycle *l);
int isolate_lifecycle_shut_down(struct isolate_lifecycle *l, uint64_t now_ms, int signal);
/* The pending order is answered: it, or 0 if there is none. */
char isolate_lifecycle_pop_reply(struct isolate_lifecycle *l);

#endif
