/* SPDX-License-Identifier: Apache-2.0 */
/* Upgrades the program without losing a connection: the new one inherits the sockets, starts its own workers
 * beside ours, and tells us to end when they serve. */
#ifndef MK_SERVER_UPGRADE_H
#define MK_SERVER_UPGRADE_H

#include <limits.h>

#include "settings/shared_state.h"
#include "worker/listeners.h"

struct mk_upgrade {
    pid_t predecessor;      /* the process that we replace; 0: none */
    pid_t child;            /* the process that replaces us; 0: none */
    char program[PATH_MAX]; /* the path that we were started from; it may be another file now */
};

/* Reads from the environment whether we are a successor, and of what secret. */
void mk_upgrade_init(struct mk_upgrade *u, struct mk_shared_state *shared);
/* We serve: tells our predecessor to end. */
void mk_upgrade_end_predecessor(struct mk_upgrade *u);

/* Starts the program at our path, which may be a new file now. */
mk_err mk_upgrade_start(struct mk_upgrade *u, struct mk_shared_state *shared, struct mk_listeners *l,
                        char *const *argv) MK_MUST_USE;
/* True, once, after the successor has died. */
bool mk_upgrade_successor_died(struct mk_upgrade *u);

#endif
