/* SPDX-License-Identifier: Apache-2.0 */
/* A worker from inside. */
#ifndef MK_SERVER_WORKER_TYPE_H
#define MK_SERVER_WORKER_TYPE_H

#include "net/inbox.h"
#include "net/threads.h"
#include "proto/acceptor.h"
#include "server/child_type.h"
#include "server/places.h"
#include "setup/accesslog.h"
#include "setup/generation.h"
#include "setup/logwriter.h"

/* The channel to the master. */
struct mk_bus {
    int master_fd; /* -1: there is none */
    struct mk_task task;
    struct mk_note *notes, *last_note; /* to ourselves */
};

struct mk_worker {
    struct mk_generation *generation;
    unsigned index, count;
    struct mk_places places;
    struct mk_loop loop;
    struct mk_limits limits;
    struct mk_web web;
    struct mk_service service;
    struct mk_access_clock clock;
    struct mk_logwriter *logs;   /* by the index of the log */
    struct mk_timer flush_timer; /* runs while a log has pending lines */
    struct mk_timer drain_timer;
    struct mk_acceptor *acceptors;
    size_t n_acceptors;
    struct mk_threads aside; /* for plugins: a slow plugin must not delay files */
    struct mk_inbox inbox;
    struct mk_children children;
    struct mk_bus bus;
    bool draining;
    bool ending;      /* no more thread work or messages to ourselves are started */
    size_t n_started; /* plugins, in their order */
    void *plugin_data[MK_PLUGINS_MAX];
};

#endif
