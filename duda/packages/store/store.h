/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker has of stores. */
#ifndef DUDA_STORE_STORE_H
#define DUDA_STORE_STORE_H

#include <duda/scope.h>
#include <duda/session.h>
#include <duda/store_backend.h>
#include <monkey/clock.h>
#include <monkey/meter.h>
#include <monkey/worker.h>

#include "lock_waiters.h"
#include "rate_limiter.h"
#include "table.h"

struct store_waiter;

struct store_worker {
    struct mk_worker *worker;
    struct store_lock_waiters *waiting;
    uint32_t slot;                        /* of this worker there */
    struct store_waiter *waiters, **last; /* of this worker, in their order */
    struct duda_store *first;             /* of those that sections bring */
    struct duda_store *sessions;          /* where they are; NULL: not in a store */
    struct store_table table, locks;      /* in memory: values; locks, which values cannot push out */
    struct store_rate_limiter counters;   /* of limits */
    struct duda_store memory;
    unsigned char secret[DUDA_SESSION_SECRET]; /* that proves sessions, as far as this worker knows */
    bool has_secret;
    uint64_t *meter; /* of memory */
};

/* Once, before all others: the plugin. */
void store_worker_set_plugin(const struct mk_plugin *plugin);
struct store_worker *store_worker_get(const struct mk_worker *w);
/* Tells all workers that a lock may be free. */
void store_worker_broadcast(struct store_worker *all, mk_str message);

/* What a key is for: its first letter. Others can neither have nor make such a key, because scopes have no colon. */
enum { STORE_KEY_VALUE = 'v', STORE_KEY_LOCK = 'l', STORE_KEY_LIMIT = 'n', STORE_KEY_SESSION = 's' };

struct store_key_buf {
    char text[2 + DUDA_SCOPE_MAX + 1 + DUDA_STORE_KEY_MAX];
};
/* "TABLE:SCOPE:KEY". */
mk_str store_key_format(struct store_key_buf *buf, char table, mk_str scope, mk_str key);

/* The one that a section has brought under that name; NULL: none has. */
struct duda_store *store_worker_find_store(const struct store_worker *all, mk_str name);

/* Milliseconds of a clock that all workers share. */

/* The store in the table. */
struct duda_store store_memory_backend(struct store_worker *all);

/* Those that wait for the lock of this message try again. */
void store_locks_on_unlock(struct store_worker *all, mk_str message);

/* Sessions are in all->sessions from now on. */
void store_sessions_enable(struct store_worker *all);

#endif
