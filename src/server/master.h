/* SPDX-License-Identifier: Apache-2.0 */
/* The process that no request ever touches: it holds the sockets and the configuration, keeps workers alive,
 * and hears what the administrator wants.
 *
 *   HUP   load the configuration again; new workers serve it, the old ones finish what they have begun
 *   USR1  open the logs anew
 *   USR2  start the program anew (an upgrade); we end when it serves
 *   QUIT  finish what was begun, then end
 *   TERM  end now (INT, too)
 */
#ifndef MK_SERVER_MASTER_H
#define MK_SERVER_MASTER_H

#include "server/generation.h"
#include "server/listeners.h"

struct mk_master_options {
    struct mk_origin origin;
    char *const *argv; /* of the program, for an upgrade */
    bool daemon;
    void *ctx; /* of the two below */
    /* Serving has begun: says so to people. `listeners` are those in use. May be NULL. */
    void (*on_serving)(const struct mk_generation *g, const struct mk_listeners *listeners, void *ctx);
    /* Called a few times a minute, and before a configuration is loaded again: for who has to keep something
     * up to date that the configuration speaks of. May be NULL. */
    void (*look)(struct mk_log *log, void *ctx);
};

/* The whole life of a master; answers the exit code. */
int mk_master_run(const struct mk_master_options *o);

/* Exit codes of the program. */
enum { MK_EXIT_FINE = 0, MK_EXIT_FAILED = 1, MK_EXIT_USAGE = 2, MK_EXIT_CONFIGURATION = 3 };

#endif
