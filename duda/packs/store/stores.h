/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker has of stores. */
#ifndef DUDA_STORE_STORES_H
#define DUDA_STORE_STORES_H

#include <duda/store_backend.h>
#include <monkey/meter.h>
#include <monkey/worker.h>

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
    struct store_table table;
    struct duda_store memory;
    struct mk_meter_part *meter; /* of memory */
};

/* Once, before all others: the plugin. */
void stores_set(const struct mk_plugin *plugin);
struct stores *stores_of(const struct mk_worker *w);
/* Tells all workers that a lock may be free. */
void stores_announce(struct stores *all, mk_str message);

/* The one that a section has brought under that name; NULL: none has. */
struct duda_store *stores_find(const struct stores *all, mk_str name);

/* Milliseconds of a clock that all workers share. */
uint64_t store_now_ms(void);

/* The store in the table. */
struct duda_store store_in_memory(struct stores *all);

/* Those that wait for the lock of this message try again. */
void store_locks_hear(struct stores *all, mk_str message);

/* Sessions are in all->sessions from now on. */
void store_sessions_use(struct stores *all);

#endif
