/* SPDX-License-Identifier: Apache-2.0 */
/* Implements duda/lock.h: locks of handlers. */
#include <duda/lock.h>
#include <duda/scope.h>
#include <errno.h>

#include "service/lock_table.h"
#include "service/suspend.h"

struct lock_wait {
    struct duda_wait wait; /* must be first */
    struct mk_timer timer; /* not set: no timeout */
};

static void on_lock_timeout(struct mk_timer *t)
{
    struct lock_wait *p = MK_CONTAINER(t, struct lock_wait, timer);
    duda_wait_wake(&p->wait);
}

static void stop_lock_timer(struct duda_wait *w)
{
    mk_timer_stop(&((struct lock_wait *)w)->timer);
}

static void on_lock_granted(void *owner)
{
    struct lock_wait *p = owner;
    duda_wait_wake(&p->wait);
}

/* A lock of the service: "SCOPE:NAME". */
struct full_name {
    char buf[DUDA_SCOPE_MAX + 1 + DUDA_LOCK_NAME_MAX];
};

static mk_str full_lock_name(struct duda_ctx *d, mk_str name, struct full_name *full)
{
    struct mk_buf text = mk_buf_fixed(full->buf, sizeof full->buf);
    duda_scope_add(&text, duda_scope(d), name);
    return text.failed ? MK_STR_NULL : mk_buf_str(&text);
}

/* Looks up a lock by its full name. */
static struct duda_lock_waiter **find_held_lock(struct duda_ctx *d, mk_str name)
{
    struct duda_lock_waiter **at = &d->lock_waiters;
    while (*at && !mk_str_eq(duda_lock_waiter_name(*at), name))
        at = &(*at)->sibling;
    return at;
}

static void release_lock(struct duda_ctx *d, struct duda_lock_waiter **at)
{
    struct duda_lock_waiter *c = *at;
    *at = c->sibling;
    duda_lock_table_dequeue(d->worker_ctx->locks, c);
    mk_mem_free(c);
}

static void release_all_locks(void *ctx)
{
    struct duda_ctx *d = ctx;
    d->has_lock_cleanup = false;
    while (d->lock_waiters)
        release_lock(d, &d->lock_waiters);
}

static int defer_release_all(struct duda_ctx *d)
{
    if (d->has_lock_cleanup)
        return 0;
    d->has_lock_cleanup = true;
    return duda_defer(d, release_all_locks, d);
}

/* Enqueues the waiter; `p` is NULL if the caller must not wait. */
static int enqueue_for_lock(struct duda_ctx *d, mk_str own_name, struct lock_wait *p)
{
    struct full_name full;
    if (own_name.len == 0 || own_name.len > DUDA_LOCK_NAME_MAX)
        return -EINVAL;
    mk_str name = full_lock_name(d, own_name, &full);
    if (*find_held_lock(d, name))
        return -EDEADLK;
    if (!d->worker_ctx->locks)
        d->worker_ctx->locks = duda_lock_table_new();
    struct duda_lock_waiter *c = d->worker_ctx->locks ? mk_mem_zalloc(1, sizeof *c) : NULL;
    if (!c)
        return -ENOMEM;
    *c = (struct duda_lock_waiter){.owner = p, .handler = d, .on_lock_granted = on_lock_granted};
    int e = duda_lock_table_enqueue(d->worker_ctx->locks, name, c);
    if (e) {
        mk_mem_free(c);
        return e;
    }
    c->sibling = d->lock_waiters;
    d->lock_waiters = c;
    return defer_release_all(d);
}

/* Would the handlers wait for each other's locks? A handler waits for its most recent lock only. The walk ends,
 * because no other cycle can exist: each would have been refused here. */
static bool closes_cycle(const struct duda_ctx *d)
{
    const struct duda_lock_waiter *c = d->lock_waiters;
    while (c && !duda_lock_waiter_has_lock(c)) {
        const struct duda_ctx *holder = duda_lock_waiter_holder(c)->handler;
        if (holder == d)
            return true;
        c = holder->lock_waiters;
    }
    return false;
}

static int wait_until_granted(struct lock_wait *p, const struct duda_lock_waiter *c, uint32_t ms)
{
    if (ms != MK_FOREVER)
        mk_timer_set(&p->timer, duda_worker(p->wait.d), ms);
    int e = duda_wait_suspend(&p->wait);
    return e ? e : duda_lock_waiter_has_lock(c) ? 0 : -ETIME;
}

static int acquire_lock(struct lock_wait *p, mk_str name, uint32_t ms)
{
    struct duda_ctx *d = p->wait.d;
    int e = enqueue_for_lock(d, name, p);
    if (e || duda_lock_waiter_has_lock(d->lock_waiters))
        return e;
    e = closes_cycle(d) ? -EDEADLK : wait_until_granted(p, d->lock_waiters, ms);
    if (e)
        release_lock(d, &d->lock_waiters); /* the most recent lock */
    return e;
}

static int try_lock(struct duda_ctx *d, mk_str name)
{
    int e = enqueue_for_lock(d, name, NULL);
    if (e || duda_lock_waiter_has_lock(d->lock_waiters))
        return e;
    release_lock(d, &d->lock_waiters);
    return -EBUSY;
}

int duda_lock(struct duda_ctx *d, mk_str name, uint32_t ms)
{
    struct lock_wait p;
    mk_timer_init(&p.timer, on_lock_timeout);
    int e = duda_wait_begin(d, &p.wait, stop_lock_timer);
    e = e ? e : ms ? acquire_lock(&p, name, ms) : try_lock(d, name);
    duda_wait_end(&p.wait);
    return e;
}

int duda_unlock(struct duda_ctx *d, mk_str name)
{
    struct full_name full;
    struct duda_lock_waiter **at = find_held_lock(d, full_lock_name(d, name, &full));
    if (!*at)
        return -EPERM;
    release_lock(d, at);
    return 0;
}
