/* SPDX-License-Identifier: Apache-2.0 */
/* Life cycle of a group as a pure state machine: events change the state, and return the signal or step that
 * follows, which the supervisor executes. */
#ifndef ISOLATE_LIFECYCLE_H
#define ISOLATE_LIFECYCLE_H

#include <monkey/sm.h>

/* Commands of the master to the supervisor. */
enum isolate_command {
    ISOLATE_START = 'S',
    ISOLATE_RELOAD = 'H',
    ISOLATE_END = 'Q', /* exit when no worker of the front server needs the group any longer, and remove its
                        * folder */
    ISOLATE_STOP = 'T',
};

enum isolate_state {
    ISOLATE_DOWN,       /* no process; one starts at start_ms */
    ISOLATE_STARTING,   /* not serving yet */
    ISOLATE_SERVING,    /* its workers serve, or did */
    ISOLATE_RESTARTING, /* killed by the supervisor to be restarted */
    ISOLATE_DRAINING,   /* shutting down, until end_ms */
    ISOLATE_ENDED,      /* ended; the supervisor exits as well */
    ISOLATE_STATES
};

/* The command of the master that is to be confirmed. */
enum isolate_pending {
    ISOLATE_PENDING_START,
    ISOLATE_PENDING_RELOAD,
    ISOLATE_PENDING_RELOAD_BEGUN, /* the next READY=1 refers to the new configuration */
    ISOLATE_PENDING_NONE,
    ISOLATE_PENDINGS
};

/* How long the group is needed. */
enum isolate_stay {
    ISOLATE_STAYS,
    ISOLATE_LEAVES,    /* until no worker needs it: the master has exited, or has another supervisor */
    ISOLATE_IS_REMOVED /* the same, and its folder is removed: it is no longer in the configuration */
};

struct isolate_lifecycle {
    struct mk_sm state, pending; /* enum isolate_state, _pending */
    enum isolate_stay stay;
    uint64_t start_ms, began_ms, end_ms;
    unsigned young_deaths; /* consecutive early deaths */
};

extern const struct mk_sm_machine isolate_lifecycle_machine, isolate_lifecycle_pending_machine;

enum isolate_due {
    ISOLATE_DUE_NOTHING,
    ISOLATE_DUE_START,     /* then call isolate_lifecycle_started() */
    ISOLATE_DUE_KILL,      /* it has not exited in time */
    ISOLATE_DUE_KILL_START /* it has not started in time: kill it, call isolate_lifecycle_restart() */
};

/* Returns the action that is due at that time. */
enum isolate_due isolate_lifecycle_due(const struct isolate_lifecycle *l, uint64_t now_ms);
/* Time until something is due, in ms; UINT64_MAX: never. */
uint64_t isolate_lifecycle_timeout_ms(const struct isolate_lifecycle *l, uint64_t now_ms);

/* ---- Events ---- */

void isolate_lifecycle_started(struct isolate_lifecycle *l, uint64_t now_ms, bool ok);
/* READY=1. True: the pending command is complete. */
bool isolate_lifecycle_ready(struct isolate_lifecycle *l);
/* RELOADING=1. */
void isolate_lifecycle_reloading(struct isolate_lifecycle *l);
/* Restarts the group's process, which the caller has killed. */
void isolate_lifecycle_restart(struct isolate_lifecycle *l);
/* The group's process has exited. True: unexpectedly. */
bool isolate_lifecycle_died(struct isolate_lifecycle *l, uint64_t now_ms);
/* Commands of the master, and the end of the need for the group. Return the signal for its process; SIGKILL:
 * for its whole process group; 0: none. */
int isolate_lifecycle_reload(struct isolate_lifecycle *l);
int isolate_lifecycle_shut_down(struct isolate_lifecycle *l, uint64_t now_ms, int signal);
/* Takes the pending command to confirm, or 0. */
char isolate_lifecycle_pop_reply(struct isolate_lifecycle *l);

#endif
