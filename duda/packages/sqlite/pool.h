/* SPDX-License-Identifier: Apache-2.0 */
/* A database in a worker: its sessions, and the handlers that wait for one. */
#ifndef DUDA_SQLITE_POOL_H
#define DUDA_SQLITE_POOL_H

#include <monkey/worker.h>

#include "common/package_migration_log.h"
#include "common/package_wait_queue.h"
#include "session.h"

struct sqlite_pool;

/* A session, and the statement that a thread runs in it. */
struct sqlite_slot {
    struct sqlite_session session; /* must be first */
    struct sqlite_pool *pool;
    struct sqlite_slot *next; /* next free slot */
    struct sqlite_job *job;   /* job that a thread runs; NULL: none */
    uint64_t since_ms;        /* start of the job */
    bool in_transaction, ends;
};

struct sqlite_pool {
    struct duda_sql_db sql; /* must be first */
    const struct sqlite_settings *settings;
    struct mk_worker *worker;
    struct mk_thread_pool *threads;
    struct sqlite_slot *slots, *free;
    struct package_wait_queue waiters; /* handlers that wait for a session */
    struct package_migration_log migration_log;
    bool is_reported, is_closing;
    uint64_t n_cursors; /* opened so far; gives each a unique number */
};

int sqlite_pool_open(struct sqlite_pool *b, struct mk_worker *w, const struct sqlite_settings *settings);
void sqlite_pool_close(struct sqlite_pool *b);

#endif
