/* SPDX-License-Identifier: Apache-2.0 */
/* A database in a worker: its sessions, their threads, and handlers that wait for a session. */
#ifndef DUDA_SQLITE_BASE_H
#define DUDA_SQLITE_BASE_H

#include <monkey/worker.h>

#include "session.h"
#include "waiters/waiters.h"

struct sqlite_base;

/* A session, and the statement that a thread runs in it. */
struct sqlite_seat {
    struct sqlite_session session; /* the first */
    struct sqlite_base *base;
    struct sqlite_seat *next; /* free */
    struct sqlite_job *job;   /* in a thread */
    bool in_transaction, ends;
};

struct sqlite_base {
    struct duda_sql sql; /* the first */
    const struct sqlite_settings *settings;
    struct mk_worker *worker;
    struct mk_threads *threads;
    struct sqlite_seat *seats, *free;
    struct pack_waiters waiters; /* for a session */
    bool is_reported;
};

int sqlite_base_open(struct sqlite_base *b, struct mk_worker *w, const struct sqlite_settings *settings);
void sqlite_base_close(struct sqlite_base *b);

#endif
