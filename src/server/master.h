/* SPDX-License-Identifier: Apache-2.0 */
/* The master process never handles requests: it holds the sockets and the configuration, keeps workers alive,
 * and handles signals:
 *
 *     HUP   reload the configuration: new workers serve it, and the old workers finish their requests
 *     USR1  reopen the logs
 *     USR2  start the program again (an upgrade): this process exits when the new one serves
 *     QUIT  finish all requests, then exit
 *     TERM  exit immediately (as does INT) */
#ifndef MK_SERVER_MASTER_H
#define MK_SERVER_MASTER_H

#include "setup/config_generation.h"
#include "worker/listeners.h"

struct mk_master_options {
    struct mk_config_source origin;
    char *const *argv; /* program arguments, for an upgrade */
    bool daemon;
    void *ctx; /* context of the callbacks below */
    /* Called when serving has begun, to tell the user. `listeners`: the listeners in use. The callback may be
     * NULL. */
    void (*on_serving)(const struct mk_config_generation *g, const struct mk_listeners *listeners, void *ctx);
    /* Called a few times a minute, and before a reload, to update files that the configuration refers to. The
     * callback may be NULL. */
    void (*periodic_work)(struct mk_log *log, void *ctx);
};

/* Runs the master until it exits; returns the exit code. */
int mk_master_run(const struct mk_master_options *o);

/* Exit codes of the program. */
enum { MK_EXIT_OK = 0, MK_EXIT_FAILED = 1, MK_EXIT_USAGE = 2, MK_EXIT_CONFIGURATION = 3 };

#endif
