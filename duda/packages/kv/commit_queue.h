/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's way to a store: it gathers the writes of all handlers, and a thread of its own makes them
 * durable. */
#ifndef DUDA_KV_COMMIT_QUEUE_H
#define DUDA_KV_COMMIT_QUEUE_H

#include <duda/store_backend.h>
#include <monkey/clock.h>
#include <monkey/worker.h>

#include "db.h"

struct duda_kv_settings {
    mk_str name, folder;
    uint32_t meter;
    uint64_t size_max;
    unsigned waiting_max;
    bool durable;
};

struct duda_kv {
    const struct duda_kv_settings *settings;
    struct mk_worker *worker;
    struct duda_kv_db *store;
    struct mk_thread_pool *thread;
    struct mk_deferred *turn;
    struct mk_timer timer;                 /* when entries are looked at that may have expired */
    struct duda_kv_batch *waiting, **last; /* for the next commit */
    struct duda_kv_batch *writing;         /* in the thread */
    unsigned n_waiting;
    uint64_t write_ms;        /* the clock of this commit */
    struct duda_store shared; /* it, for duda/store.h */
};

int duda_kv_commit_queue_open(struct duda_kv *kv, struct mk_worker *w,
                              const struct duda_kv_settings *settings);
/* Waits for the thread; what has not reached it is dropped. */
void duda_kv_commit_queue_close(struct duda_kv *kv);
/* Takes the batch, and calls its on_done in the loop, with its error; on_done frees it. 0, or -EBUSY: then it
 * is not taken. */
int duda_kv_commit_queue_submit(struct duda_kv *kv, struct duda_kv_batch *b);
/* Milliseconds since 1970. */

#endif
