/* SPDX-License-Identifier: Apache-2.0 */
/* A worker as a process of its own: what it gives up before it serves, and how it hears from the master. */
#ifndef MK_SERVER_PROCESS_H
#define MK_SERVER_PROCESS_H

#include <signal.h>

#include "server/errorlog.h"
#include "server/listeners.h"
#include "server/worker.h"

struct mk_process_options {
    struct mk_generation *generation;
    struct mk_listeners *listeners;
    unsigned index, workers;
    struct mk_counters *counters;
    struct mk_places places;
    struct mk_errorlog *log;
    int control_fd; /* the worker's end; -1: none */
    bool silent;    /* once it serves: of a daemon */
    pid_t master;
};

/* The whole life of a worker, from right after the fork to its exit code. Signals must be blocked. */
int mk_process_main(const struct mk_process_options *o);

/* The signals that master and workers read through a signalfd, blocked for everything else. */
void mk_process_block_signals(void);
/* A non-blocking signalfd for them, or an error. */
int mk_process_signal_fd(void);

#endif
