/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/request_ref.h>

#include "base/mem.h"
#include "lib/handle_registry.h"
#include "lib/last_error.h"
#include "lib/server_type.h"
#include "lib/worker_handle.h"

struct mk_request_ref {
    atomic_uint owners; /* number of owners: the program, the request until it ends, and pending calls */
    atomic_bool is_stale;
    struct mk_worker_handle *worker_handle;
    struct mk_request *request; /* only for the thread of the request; NULL: the request has ended */
};

struct posted_call {
    struct mk_request_ref *ref;
    void (*fn)(struct mk_request *request, void *ctx);
    void *ctx;
};

static void release_ref(struct mk_request_ref *t)
{
    if (atomic_fetch_sub(&t->owners, 1) > 1)
        return;
    mk_worker_handle_unref(t->worker_handle);
    mk_mem_free(t);
}

static void on_request_end(void *data)
{
    struct mk_request_ref *t = data;
    t->request = NULL;
    atomic_store(&t->is_stale, true);
    release_ref(t);
}

/* Creates the handle on first use: most servers have no request references. */
static struct mk_worker_handle *worker_handle_of(struct mk_worker *w)
{
    struct mk_lib_worker *r = MK_CONTAINER(w, struct mk_lib_worker, worker);
    if (!r->worker_handle)
        r->worker_handle = mk_worker_handle_new(w);
    return r->worker_handle;
}

static struct mk_request_ref *alloc_ref(void)
{
    struct mk_request_ref *t = mk_mem_zalloc(1, sizeof *t);
    if (t && mk_handle_register(t))
        return t;
    mk_mem_free(t);
    return NULL;
}

struct mk_request_ref *mk_request_ref_new(struct mk_request *request)
{
    int before MK_KEEP_ERRNO = errno;
    struct mk_worker_handle *worker_handle = request ? worker_handle_of(mk_request_worker(request)) : NULL;
    struct mk_request_ref *t = worker_handle ? alloc_ref() : NULL;
    if (!t)
        return NULL;
    atomic_init(&t->owners, 2);
    t->worker_handle = mk_worker_handle_ref(worker_handle);
    t->request = request;
    if (mk_request_add_cleanup(request, on_request_end, t) == 0)
        return t;
    mk_worker_handle_unref(t->worker_handle);
    mk_handle_unregister(t);
    mk_mem_free(t);
    return NULL;
}

static void run_posted_call(void *data)
{
    struct posted_call *c = data;
    struct mk_request_ref *t = c->ref;
    if (c->fn)
        c->fn(t->request, c->ctx);
    if (t->request) /* the call may have ended the request */
        mk_request_resume(t->request);
    mk_mem_free(c);
    release_ref(t);
}

int mk_request_ref_resume(struct mk_request_ref *ref, void (*in_loop)(struct mk_request *request, void *ctx),
                          void *ctx)
{
    int before MK_KEEP_ERRNO = errno;
    if (!mk_handle_is_valid(ref))
        return -EINVAL;
    if (mk_request_ref_is_gone(ref))
        return -ESTALE;
    struct posted_call *c = mk_mem_alloc(sizeof *c);
    if (!c)
        return -ENOMEM;
    *c = (struct posted_call){.ref = ref, .fn = in_loop, .ctx = ctx};
    atomic_fetch_add(&ref->owners, 1);
    mk_err e = mk_worker_handle_post(ref->worker_handle, run_posted_call, c);
    if (e) {
        mk_mem_free(c);
        release_ref(ref);
    }
    return e;
}

bool mk_request_ref_is_gone(const struct mk_request_ref *ref)
{
    return !mk_handle_is_valid(ref) || atomic_load(&ref->is_stale);
}

void mk_request_ref_free(struct mk_request_ref *ref)
{
    int before MK_KEEP_ERRNO = errno;
    if (!mk_handle_is_valid(ref))
        return;
    mk_handle_unregister(ref);
    release_ref(ref);
}
