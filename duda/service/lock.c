/* SPDX-License-Identifier: Apache-2.0 */
/* Locks as handlers see them. */
#include <duda/lock.h>
#include <duda/scope.h>
#include <errno.h>

#include "service/locks.h"
#include "service/task.h"

struct patience {
    struct duda_wait wait; /* the first */
    struct mk_timer timer; /* not set: without limit */
};

static void on_late(struct mk_timer *t)
{
    struct patience *p = MK_CONTAINER(t, struct patience, timer);
    duda_wait_wake(&p->wait);
}

static void end_patience(struct duda_wait *w)
{
    mk_timer_stop(&((struct patience *)w)->timer);
}

static void on_turn(void *owner)
{
    struct patience *p = owner;
    duda_wait_wake(&p->wait);
}

/* A lock of the service: "SCOPE:NAME". */
struct full_name {
    char room[DUDA_SCOPE_MAX + 1 + DUDA_LOCK_NAME];
};

static mk_str bind_name(const struct duda *d, mk_str name, struct full_name *full)
{
    struct mk_buf text = mk_buf_fixed(full->room, sizeof full->room);
    duda_scope_add(&text, duda_scope(d), name);
    return text.failed ? MK_ABSENT : mk_buf_str(&text);
}

/* By its full name. */
static struct duda_claim **find(struct duda *d, mk_str name)
{
    struct duda_claim **at = &d->claims;
    while (*at && !mk_str_eq(duda_locks_name(*at), name))
        at = &(*at)->sibling;
    return at;
}

static void give_back(struct duda *d, struct duda_claim **at)
{
    struct duda_claim *c = *at;
    *at = c->sibling;
    duda_locks_leave(d->home->locks, c);
    mk_mem_free(c);
}

static void give_all_back(void *ctx)
{
    struct duda *d = ctx;
    d->gives_back = false;
    while (d->claims)
        give_back(d, &d->claims);
}

static int promise(struct duda *d)
{
    if (d->gives_back)
        return 0;
    d->gives_back = true;
    return duda_defer(d, give_all_back, d);
}

/* Takes its place in the queue; `p` is for one that waits. */
static int claim(struct duda *d, mk_str own_name, struct patience *p)
{
    struct full_name full;
    if (own_name.len == 0 || own_name.len > DUDA_LOCK_NAME)
        return -EINVAL;
    mk_str name = bind_name(d, own_name, &full);
    if (*find(d, name))
        return -EDEADLK;
    if (!d->home->locks)
        d->home->locks = duda_locks_new();
    struct duda_claim *c = d->home->locks ? mk_mem_zalloc(1, sizeof *c) : NULL;
    if (!c)
        return -ENOMEM;
    *c = (struct duda_claim){.owner = p, .on_turn = on_turn};
    int e = duda_locks_enter(d->home->locks, name, c);
    if (e) {
        mk_mem_free(c);
        return e;
    }
    c->sibling = d->claims;
    d->claims = c;
    return promise(d);
}

static int wait_for_turn(struct patience *p, const struct duda_claim *c, uint32_t ms)
{
    if (ms)
        mk_timer_set(&p->timer, duda_worker(p->wait.d), ms);
    int e = duda_wait_suspend(&p->wait);
    return e ? e : duda_locks_has(c) ? 0 : -ETIMEDOUT;
}

static int lock(struct patience *p, mk_str name, uint32_t ms)
{
    struct duda *d = p->wait.d;
    int e = claim(d, name, p);
    if (e || duda_locks_has(d->claims))
        return e;
    e = wait_for_turn(p, d->claims, ms);
    if (e)
        give_back(d, &d->claims); /* the last one that it asked for */
    return e;
}

int duda_lock(struct duda *d, mk_str name, uint32_t ms)
{
    struct patience p;
    mk_timer_init(&p.timer, on_late);
    int e = duda_wait_begin(d, &p.wait, end_patience);
    e = e ? e : lock(&p, name, ms);
    duda_wait_end(&p.wait);
    return e;
}

int duda_lock_try(struct duda *d, mk_str name)
{
    struct duda_wait wait;
    int e = duda_wait_begin(d, &wait, NULL);
    e = e ? e : claim(d, name, NULL);
    if (!e && !duda_locks_has(d->claims)) {
        give_back(d, &d->claims);
        e = -EBUSY;
    }
    duda_wait_end(&wait);
    return e;
}

int duda_unlock(struct duda *d, mk_str name)
{
    struct full_name full;
    struct duda_claim **at = find(d, bind_name(d, name, &full));
    if (!*at)
        return -EPERM;
    give_back(d, at);
    return 0;
}
