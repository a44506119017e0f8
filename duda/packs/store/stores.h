/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker has of stores. */
#ifndef DUDA_STORE_STORES_H
#define DUDA_STORE_STORES_H

#include <duda/scope.h>
#include <duda/store_backend.h>
#include <duda/visitor.h>
#include <monkey/clock.h>
#include <monkey/meter.h>
#include <monkey/worker.h>

#include "counters.h"
#include "table.h"
#include "waiting.h"

struct store_waiter;

struct stores {
    struct mk_worker *worker;
    struct store_waiting *waiting;
    uint32_t place;                       /* of this worker there */
    struct store_waiter *waiters, **last; /* of this worker, in their order */
    struct duda_store *first;             /* of those that sections bring */
    struct duda_store *sessions;          /* where they are; NULL: not in a store */
    struct store_table table, locks;      /* in memory: values; locks, which values cannot push out */
    struct store_counters counters;       /* of limits */
    struct duda_store memory;
    unsigned char secret[DUDA_SESSION_SECRET]; /* that proves sessions, as far as this worker knows */
    bool has_secret;
    uint64_t *meter; /* of memory */
};

/* Once, before all others: the plugin. */
void stores_set(const struct mk_plugin *plugin);
struct stores *stores_of(const struct mk_worker *w);
/* Tells all workers that a lock may be free. */
void stores_announce(struct stores *all, mk_str message);

/* What a key is for: its first letter. Others can neither have nor make such a key, because scopes have no colon. */
enum { STORES_VALUES = 'v', STORES_LOCKS = 'l', STORES_LIMITS = 'n', STORES_SESSIONS = 's' };

struct stores_key {
    char text[2 + DUDA_SCOPE_MAX + 1 + DUDA_STORE_KEY_MAX];
};
/* "TABLE:SCOPE:KEY". */
mk_str stores_key(struct stores_key *room, char table, mk_str scope, mk_str key);

/* The one that a section has brought under that name; NULL: none has. */
struct duda_store *stores_find(const struct stores *all, mk_str name);

/* Milliseconds of a clock that all workers share. */

/* The store in the table. */
struct duda_store store_in_memory(struct stores *all);

/* Those that wait for the lock of this message try again. */
void store_locks_hear(struct stores *all, mk_str message);

/* Sessions are in all->sessions from now on. */
void store_sessions_use(struct stores *all);

#endif
