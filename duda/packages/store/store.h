/* SPDX-License-Identifier: Apache-2.0 */
/* The stores of a worker. */
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
    uint32_t slot;                        /* slot of this worker in `waiting` */
    struct store_waiter *waiters, **last; /* waiters of this worker, in FIFO order */
    struct duda_store *first;             /* stores provided by sections */
    struct duda_store *sessions;          /* the store that holds sessions; NULL: none does */
    struct store_table table, locks;      /* in memory: values; locks, which values cannot evict */
    struct store_rate_limiter counters;   /* counters of rate limits */
    struct duda_store memory;
    unsigned char secret[DUDA_SESSION_SECRET_SIZE]; /* authenticates sessions; valid if has_secret */
    bool has_secret;
    uint64_t *meter; /* metrics of the store in memory */
};

/* Call it once, before the other functions. */
void store_worker_set_plugin(const struct mk_plugin *plugin);
struct store_worker *store_worker_get(const struct mk_worker *w);
/* Announces to all workers that a lock may be free. */
void store_worker_broadcast(struct store_worker *all, mk_str message);

/* The first letter of a key names its table. Services can neither read nor create keys of other tables,
 * because scopes contain no colon. */
enum {
    STORE_KEY_VALUE = 'v',
    STORE_KEY_LOCK = 'l',
    STORE_KEY_LIMIT = 'n',
    STORE_KEY_BUCKET = 'b',
    STORE_KEY_SESSION = 's'
};

struct store_key_buf {
    char text[2 + DUDA_SCOPE_MAX + 1 + DUDA_STORE_KEY_MAX];
};
/* Formats "TABLE:SCOPE:KEY". */
mk_str store_key_format(struct store_key_buf *buf, char table, mk_str scope, mk_str key);

/* Returns the store that a section provides under that name; NULL if there is none. */
struct duda_store *store_worker_find_store(const struct store_worker *all, mk_str name);

/* Returns the time in milliseconds, from a clock that all workers share. */

/* Returns the store in shared memory. */
struct duda_store store_memory_backend(struct store_worker *all);

/* Wakes a waiter for the lock that the message names. */
void store_locks_on_unlock(struct store_worker *all, mk_str message);

/* Stores sessions in all->sessions from now on. */
void store_sessions_enable(struct store_worker *all);

#endif
