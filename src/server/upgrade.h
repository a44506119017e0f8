/* SPDX-License-Identifier: Apache-2.0 */
/* Upgrades the program without losing connections: the new program inherits the sockets, starts its own
 * workers next to ours, and tells us to exit when they serve. */
#ifndef MK_SERVER_UPGRADE_H
#define MK_SERVER_UPGRADE_H

#include <limits.h>

#include "setup/shared_state.h"
#include "worker/listeners.h"

struct mk_upgrade {
    pid_t predecessor;      /* process that we replace; 0: none */
    pid_t child;            /* process that replaces us; 0: none */
    bool is_complete;       /* the child serves */
    char program[PATH_MAX]; /* path that we were started from; the file may have been replaced */
};

/* Finds out from the environment whether we are a successor, and reads the secret of the predecessor. */
void mk_upgrade_init(struct mk_upgrade *u, struct mk_shared_state *shared);
/* Call it when we are serving: tells the predecessor to exit. */
void mk_upgrade_end_predecessor(struct mk_upgrade *u);

/* Starts the successor: the program at our path, which may be a new file. */
mk_err mk_upgrade_start(struct mk_upgrade *u, struct mk_shared_state *shared, struct mk_listeners *l,
                        char *const *argv) MK_MUST_USE;
/* Call it for each SIGQUIT: from the successor, it means that the successor serves. */
void mk_upgrade_on_quit(struct mk_upgrade *u, pid_t sender);
/* Has the successor died before it served? Returns true only once. */
bool mk_upgrade_successor_died(struct mk_upgrade *u);

#endif
