/* SPDX-License-Identifier: Apache-2.0 */
/* Calls posted to all workers by any thread. */
#include <stdatomic.h>

#include "base/mem.h"
#include "lib/handle_registry.h"
#include "lib/last_error.h"
#include "lib/server_type.h"

struct call {
    struct mk_post post;
    struct broadcast *broadcast;
    struct mk_worker *worker;
};

/* A call to mk_server_post(). */
struct broadcast {
    void (*fn)(struct mk_worker *w, void *ctx);
    void (*done)(void *ctx);
    void *ctx;
    atomic_uint left; /* calls still to be made, plus one while they are being posted */
    struct call calls[];
};

static void broadcast_unref(struct broadcast *b)
{
    if (atomic_fetch_sub(&b->left, 1) > 1)
        return;
    if (b->done)
        b->done(b->ctx);
    mk_mem_free(b);
}

static void run_call(void *ctx)
{
    struct call *c = ctx;
    c->broadcast->fn(c->worker, c->broadcast->ctx);
    broadcast_unref(c->broadcast);
}

static bool post_call(struct broadcast *b, struct call *c, struct mk_lib_worker *r)
{
    *c = (struct call){.post = {.fn = run_call, .ctx = c}, .broadcast = b, .worker = &r->worker};
    if (!atomic_load(&r->serves))
        return false;
    atomic_fetch_add(&b->left, 1);
    if (!mk_post_queue_push_static(&r->worker.inbox, &c->post))
        return true;
    atomic_fetch_sub(&b->left, 1);
    return false;
}

static bool post_calls(struct mk_server *s, struct broadcast *b, unsigned n)
{
    bool any = false;
    for (unsigned i = 0; i < n; i++)
        any |= post_call(b, &b->calls[i], &s->workers[i]);
    return any;
}

/* Call it only while n_waking is incremented, so that no worker ends in the meantime. The caller owns a
 * reference to *out. */
static mk_err post_to_all(struct mk_server *s, const struct broadcast *what, struct broadcast **out)
{
    unsigned n = atomic_load(&s->n_workers);
    if (!n)
        return -ESHUTDOWN;
    struct broadcast *b = mk_mem_zalloc(1, sizeof *b + n * sizeof *b->calls);
    if (!b)
        return -ENOMEM;
    b->fn = what->fn;
    b->done = what->done;
    b->ctx = what->ctx;
    atomic_init(&b->left, 1);
    *out = b;
    if (post_calls(s, b, n))
        return 0;
    mk_mem_free(b);
    return -ESHUTDOWN;
}

int mk_server_post(struct mk_server *s, void (*fn)(struct mk_worker *w, void *ctx), void (*done)(void *ctx),
                   void *ctx)
{
    int before MK_KEEP_ERRNO = errno;
    if (!mk_handle_is_valid(s) || !fn)
        return -EINVAL;
    struct broadcast *b;
    atomic_fetch_add(&s->n_waking, 1);
    mk_err e = post_to_all(s, &(struct broadcast){.fn = fn, .done = done, .ctx = ctx}, &b);
    atomic_fetch_sub(&s->n_waking, 1);
    if (!e)
        broadcast_unref(b); /* after n_waking was decremented, because done() may wait for the workers */
    return e;
}

/* ---- Pausing: a program may accept no connections, for example while a backend is overloaded ---- */

static void hold_accepting(struct mk_worker *w, void *ctx)
{
    (void)ctx;
    mk_worker_hold_accepting(w, MK_WORKER_HOLD_PROGRAM, true);
}

static void continue_accepting(struct mk_worker *w, void *ctx)
{
    (void)ctx;
    mk_worker_hold_accepting(w, MK_WORKER_HOLD_PROGRAM, false);
}

int mk_server_pause_accepting(struct mk_server *s)
{
    return mk_server_post(s, hold_accepting, NULL, NULL);
}

int mk_server_resume_accepting(struct mk_server *s)
{
    return mk_server_post(s, continue_accepting, NULL, NULL);
}
