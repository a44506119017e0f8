/* SPDX-License-Identifier: Apache-2.0 */
/* Locks as handlers see them. */
#include <duda/lock.h>
#include <duda/scope.h>
#include <errno.h>

#include "service/locks.h"
#include "service/task.h"

struct patience {
    struct duda_wait wait;
    struct duda *d;
    struct mk_alarm *alarm;
    bool over;
};

static void on_late(void *ctx)
{
    struct patience *p = ctx;
    p->over = true;
    duda_wake(p->d);
}

static void cancel_patience(struct duda_wait *w)
{
    mk_alarm_free(((struct patience *)w)->alarm);
}

static void on_turn(void *owner)
{
    duda_wake(owner);
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

/* Takes its place in the queue. */
static int claim(struct duda *d, mk_str own_name)
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
    *c = (struct duda_claim){.owner = d, .on_turn = on_turn};
    int e = duda_locks_enter(d->home->locks, name, c);
    if (e) {
        mk_mem_free(c);
        return e;
    }
    c->sibling = d->claims;
    d->claims = c;
    return promise(d);
}

static int wait_for_turn(struct duda *d, const struct duda_claim *c, uint32_t ms)
{
    struct patience p = {.d = d};
    p.alarm = ms ? mk_alarm_new(d->home->worker, on_late, &p) : NULL;
    int e = ms && !p.alarm ? -ENOMEM : 0;
    if (p.alarm)
        mk_alarm_set(p.alarm, ms);
    duda_wait_begin(d, &p.wait, cancel_patience);
    while (!duda_locks_has(c) && !p.over && !e)
        e = duda_suspend(d);
    duda_wait_end(&p.wait);
    mk_alarm_free(p.alarm);
    if (!e)
        e = d->ended; /* at the same moment */
    return e ? e : duda_locks_has(c) ? 0 : -ETIMEDOUT;
}

int duda_lock(struct duda *d, mk_str name, uint32_t ms)
{
    if (d->ended)
        return duda_suspend(d);
    int e = claim(d, name);
    if (e || duda_locks_has(d->claims))
        return e;
    e = wait_for_turn(d, d->claims, ms);
    if (e)
        give_back(d, &d->claims); /* the last one that it asked for */
    return e;
}

int duda_lock_try(struct duda *d, mk_str name)
{
    if (d->ended)
        return duda_suspend(d);
    int e = claim(d, name);
    if (!e && !duda_locks_has(d->claims)) {
        give_back(d, &d->claims);
        return -EBUSY;
    }
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
