/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/worker_handle.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"

struct mk_worker_handle {
    atomic_uint owners;
    pthread_mutex_t lock;
    struct mk_worker *worker; /* protected by the lock; NULL: the worker has ended */
};

struct mk_worker_handle *mk_worker_handle_new(struct mk_worker *w)
{
    struct mk_worker_handle *o = mk_mem_zalloc(1, sizeof *o);
    if (!o)
        return NULL;
    atomic_init(&o->owners, 1);
    pthread_mutex_init(&o->lock, NULL);
    o->worker = w;
    return o;
}

struct mk_worker_handle *mk_worker_handle_ref(struct mk_worker_handle *o)
{
    atomic_fetch_add(&o->owners, 1);
    return o;
}

void mk_worker_handle_unref(struct mk_worker_handle *o)
{
    if (atomic_fetch_sub(&o->owners, 1) > 1)
        return;
    pthread_mutex_destroy(&o->lock);
    mk_mem_free(o);
}

void mk_worker_handle_close(struct mk_worker_handle *o)
{
    if (!o)
        return;
    pthread_mutex_lock(&o->lock);
    o->worker = NULL;
    pthread_mutex_unlock(&o->lock);
    mk_worker_handle_unref(o);
}

/* Holds the lock until the loop is woken, so that the worker does not end in between. */
mk_err mk_worker_handle_post(struct mk_worker_handle *o, void (*fn)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&o->lock);
    mk_err e = o->worker ? mk_worker_post(o->worker, fn, ctx) : -ESTALE;
    pthread_mutex_unlock(&o->lock);
    return e == -ESHUTDOWN ? -ESTALE : e;
}
