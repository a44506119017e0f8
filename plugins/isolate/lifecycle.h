/* SPDX-License-Identifier: Apache-2.0 */
/* The life cycle of a group as a pure state machine: events change the state and return the next signal or
 * step, which the supervisor executes. */
#ifndef ISOLATE_LIFECYCLE_H
#define ISOLATE_LIFECYCLE_H

#include <monkey/state_machine.h>

/* Commands from the master to the supervisor. */
enum isolate_command {
    ISOLATE_START = 'S',
    ISOLATE_RELOAD = 'H',
    ISOLATE_END = 'Q', /* exit when no worker of the front server needs the group any longer, and remove its
                        * folder */
    ISOLATE_STOP = 'T',
};

enum isolate_state {
    ISOLATE_DOWN,       /* there is no process; one starts at start_ms */
    ISOLATE_STARTING,   /* the process runs but does not serve yet */
    ISOLATE_SERVING,    /* its workers serve, or have served */
    ISOLATE_RESTARTING, /* the supervisor has killed the process to restart it */
    ISOLATE_DRAINING,   /* the process is shutting down, until end_ms */
    ISOLATE_ENDED,      /* the process has ended, and the supervisor exits */
    ISOLATE_STATES
};

/* The master's command that must be confirmed. */
enum isolate_pending {
    ISOLATE_PENDING_START,
    ISOLATE_PENDING_RELOAD,
    ISOLATE_PENDING_RELOAD_BEGUN, /* the next READY=1 refers to the new configuration */
    ISOLATE_PENDING_NONE,
    ISOLATE_PENDINGS
};

/* How long the group must keep running. */
enum isolate_stay {
    ISOLATE_STAYS,
    ISOLATE_LEAVES, /* until no worker needs it, because the master has exited or has another supervisor */
    /* until no worker needs it, because the configuration no longer contains it; the server then removes its
     * folder */
    ISOLATE_IS_REMOVED
};

struct isolate_lifecycle {
    struct mk_state state, pending; /* enum isolate_state, enum isolate_pending */
    enum isolate_stay stay;
    uint64_t start_ms, began_ms, end_ms;
    unsigned young_deaths; /* number of consecutive early exits */
};

extern const struct mk_state_machine isolate_lifecycle_machine, isolate_lifecycle_pending_machine;

enum isolate_due {
    ISOLATE_DUE_NOTHING,
    ISOLATE_DUE_START,     /* start the process, then call isolate_lifecycle_started() */
    ISOLATE_DUE_KILL,      /* kill the process, which has not exited in time */
    ISOLATE_DUE_KILL_START /* kill the process, which hangs at its start; call isolate_lifecycle_restart() */
};

/* Returns the action that is due at that time. */
enum isolate_due isolate_lifecycle_due_action(const struct isolate_lifecycle *l, uint64_t now_ms);
/* Returns the time until an action is due, in ms; UINT64_MAX: never. */
uint64_t isolate_lifecycle_timeout_ms(const struct isolate_lifecycle *l, uint64_t now_ms);

/* ---- Events ---- */

void isolate_lifecycle_started(struct isolate_lifecycle *l, uint64_t now_ms, bool ok);
/* The process has sent READY=1. Returns true if the pending command is complete. */
bool isolate_lifecycle_ready(struct isolate_lifecycle *l);
/* The process has sent RELOADING=1. */
void isolate_lifecycle_reloading(struct isolate_lifecycle *l);
/* Restarts the group's process, which the caller has killed. */
void isolate_lifecycle_restart(struct isolate_lifecycle *l);
/* The group's process has exited. Returns true if the exit was unexpected. */
bool isolate_lifecycle_died(struct isolate_lifecycle *l, uint64_t now_ms);
/* The master has sent a reload command. Returns the signal to send to the process, where SIGKILL is for its
 * whole process group; 0: none. */
int isolate_lifecycle_reload(struct isolate_lifecycle *l);
/* The master has sent a command to exit, or the group is no longer needed. Returns a signal like
 * isolate_lifecycle_reload(); `signal` is the one for a process that serves. */
int isolate_lifecycle_shut_down(struct isolate_lifecycle *l, uint64_t now_ms, int signal);
/* Removes and returns the command to confirm; 0: none. */
char isolate_lifecycle_pop_reply(struct isolate_lifecycle *l);

#endif
