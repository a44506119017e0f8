/* SPDX-License-Identifier: Apache-2.0 */
/* A new program takes over without losing a connection: it inherits the sockets, starts its own workers
 * beside ours, and tells us to end when they serve. */
#ifndef MK_SERVER_UPGRADE_H
#define MK_SERVER_UPGRADE_H

#include <limits.h>

#include "server/listeners.h"

struct mk_upgrade {
    pid_t predecessor;      /* whom we take over from; 0: nobody */
    pid_t child;            /* who takes over from us; 0: nobody */
    char program[PATH_MAX]; /* where we were started from; the file there may be another one now */
};

/* Learns from the environment whether we are a successor. */
void mk_upgrade_init(struct mk_upgrade *u);
/* We serve: our predecessor may end. */
void mk_upgrade_finish(struct mk_upgrade *u);

/* Starts the program anew, from where it stands in the file system now. */
mk_err mk_upgrade_start(struct mk_upgrade *u, struct mk_listeners *l, char *const *argv) MK_MUST_USE;
/* Has the successor died? Told once. */
bool mk_upgrade_failed(struct mk_upgrade *u);

#endif
