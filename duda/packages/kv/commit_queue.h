/* SPDX-License-Identifier: Apache-2.0 */
/* Group commit: collects the writes of all handlers of a worker, and commits them with one sync in a
 * thread. */
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
    bool sync;
};

struct duda_kv {
    const struct duda_kv_settings *settings;
    struct mk_worker *worker;
    struct duda_kv_db *store;
    struct mk_thread_pool *thread;
    struct mk_deferred *deferred;
    struct mk_timer timer;                 /* next purge of expired entries */
    struct duda_kv_batch *waiting, **last; /* batches of the next commit */
    struct duda_kv_batch *committing;      /* batches that the thread writes */
    unsigned n_waiting;
    uint64_t write_ms;        /* start time of the running commit */
    struct duda_store shared; /* this store as a backend of duda/store.h */
};

int duda_kv_commit_queue_open(struct duda_kv *kv, struct mk_worker *w,
                              const struct duda_kv_settings *settings);
/* Waits for the thread, and drops the batches that it has not started to write. */
void duda_kv_commit_queue_close(struct duda_kv *kv);
/* Takes ownership of the batch. After the commit, batch->error is set, and batch->on_done() is called in the
 * loop and frees the batch. Returns 0, or -EBUSY, in which case the caller still owns the batch. */
int duda_kv_commit_queue_submit(struct duda_kv *kv, struct duda_kv_batch *b);
/* Milliseconds since 1970. */

#endif
