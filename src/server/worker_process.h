/* SPDX-License-Identifier: Apache-2.0 */
/* Worker process: drops privileges before it serves, and handles signals and messages of the master. */
#ifndef MK_SERVER_WORKER_PROCESS_H
#define MK_SERVER_WORKER_PROCESS_H

#include <signal.h>

#include "logs/errorlog.h"
#include "worker/listeners.h"
#include "worker/worker.h"

struct mk_worker_process_options {
    struct mk_config_generation *generation;
    struct mk_listeners *listeners;
    unsigned index, workers;
    struct mk_counters *counters;
    struct mk_scoreboard scoreboard;
    struct mk_errorlog *log;
    int control_fd; /* the worker's end of its control channel; -1: none */
    bool silent;    /* daemon: the worker stops using the terminal when it is ready */
    pid_t master;
};

/* Runs a worker in a process that was just forked; returns the exit code. Signals must be blocked. */
int mk_worker_process_main(const struct mk_worker_process_options *o);

#endif
