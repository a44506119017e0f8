/* SPDX-License-Identifier: Apache-2.0 */
/* Only one commit runs at a time: batches that arrive during a commit share the next one and its cost. */
#include "commit_queue.h"

#include <errno.h>

enum { PURGE_MS = 5000 };

static void write_batches(void *ctx)
{
    struct duda_kv *kv = ctx;
    duda_kv_db_write(kv->store, kv->committing, kv->write_ms);
}

static void finish_batches(struct duda_kv_batch *b, int error)
{
    for (struct duda_kv_batch *next; b; b = next) {
        next = b->next;
        b->error = error ? error : b->error;
        b->on_done(b);
    }
}

static struct duda_kv_batch *detach_waiting_batches(struct duda_kv *kv)
{
    struct duda_kv_batch *all = kv->waiting;
    kv->waiting = NULL;
    kv->last = &kv->waiting;
    kv->n_waiting = 0;
    return all;
}

static void on_commit_done(void *ctx)
{
    struct duda_kv *kv = ctx;
    struct duda_kv_batch *done = kv->committing;
    kv->committing = NULL;
    finish_batches(done, 0);
    if (kv->waiting)
        mk_deferred_post(kv->deferred);
}

static void start_commit(void *ctx)
{
    struct duda_kv *kv = ctx;
    if (kv->committing || !kv->waiting)
        return;
    kv->committing = detach_waiting_batches(kv);
    kv->write_ms = mk_clock_unix_ms();
    int e = mk_thread_pool_submit(kv->thread, write_batches, on_commit_done, kv);
    if (e) {
        struct duda_kv_batch *rejected = kv->committing;
        kv->committing = NULL;
        finish_batches(rejected, -EBUSY);
    }
}

int duda_kv_commit_queue_submit(struct duda_kv *kv, struct duda_kv_batch *b)
{
    if (kv->n_waiting >= kv->settings->waiting_max)
        return -EBUSY;
    b->next = NULL;
    *kv->last = b;
    kv->last = &b->next;
    kv->n_waiting++;
    if (!kv->committing)
        mk_deferred_post(kv->deferred);
    return 0;
}

/* Starts an empty commit, which purges expired entries even if no handler writes. */
static void on_purge_timer(struct mk_timer *t)
{
    struct duda_kv *kv = MK_CONTAINER(t, struct duda_kv, timer);
    struct duda_kv_batch *nothing = kv->n_waiting ? NULL : duda_kv_batch_new(kv);
    if (nothing) {
        nothing->on_done = duda_kv_batch_free;
        if (duda_kv_commit_queue_submit(kv, nothing))
            duda_kv_batch_free(nothing);
    }
    mk_timer_set(&kv->timer, kv->worker, PURGE_MS);
}

int duda_kv_commit_queue_open(struct duda_kv *kv, struct mk_worker *w,
                              const struct duda_kv_settings *settings)
{
    kv->settings = settings;
    kv->worker = w;
    kv->last = &kv->waiting;
    int e = duda_kv_db_open(settings->folder.p, settings->size_max, settings->sync, &kv->store);
    if (e)
        return e;
    kv->thread = mk_thread_pool_new(w, 1, 1);
    kv->deferred = mk_deferred_new(w, start_commit, kv);
    mk_timer_init(&kv->timer, on_purge_timer);
    if (!kv->thread || !kv->deferred)
        return -ENOMEM;
    if (mk_worker_index(w) == 0)
        mk_timer_set(&kv->timer, w, PURGE_MS);
    return 0;
}

void duda_kv_commit_queue_close(struct duda_kv *kv)
{
    mk_thread_pool_free(kv->thread);
    mk_deferred_free(kv->deferred);
    mk_timer_stop(&kv->timer);
    if (kv->last)
        finish_batches(detach_waiting_batches(kv), -ESHUTDOWN);
    duda_kv_db_close(kv->store);
}
