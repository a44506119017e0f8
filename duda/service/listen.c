/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers that hear rooms. */
#include <errno.h>

#include "service/membership.h"
#include "service/task.h"

struct duda_listener {
    struct duda *d;
    struct duda_guest *members;
    unsigned first, n; /* of those that wait */
    struct mk_buf waiting[DUDA_ROOM_WAITING];
};

static void drop_first(struct duda_listener *l)
{
    mk_buf_free(&l->waiting[l->first]);
    l->first = (l->first + 1) % DUDA_ROOM_WAITING;
    l->n--;
}

static void hear(void *owner, struct duda_news *news)
{
    struct duda_listener *l = owner;
    if (l->n == DUDA_ROOM_WAITING)
        drop_first(l);
    struct mk_buf *b = &l->waiting[(l->first + l->n) % DUDA_ROOM_WAITING];
    *b = mk_buf_growing(DUDA_ROOM_MESSAGE + 1);
    mk_buf_add(b, news->text);
    if (b->failed)
        mk_buf_free(b);
    else
        l->n++;
    duda_wake(l->d);
}

static void end(void *ctx)
{
    struct duda_listener *l = ctx;
    duda_membership_end(l->d->home, &l->members);
    while (l->n)
        drop_first(l);
    l->d->listener = NULL;
    mk_mem_free(l);
}

int duda_room_listen(struct duda *d, mk_str room)
{
    if (!d->listener) {
        struct duda_listener *l = mk_mem_zalloc(1, sizeof *l);
        if (!l)
            return -ENOMEM;
        l->d = d;
        d->listener = l;
        int e = duda_defer(d, end, l);
        if (e)
            return e;
    }
    return duda_membership_begin(d->home, &d->listener->members, room, d->listener, hear);
}

static void on_late(void *ctx)
{
    struct duda *d = ctx;
    d->is_late = true;
    duda_wake(d);
}

int duda_room_hear(struct duda *d, uint32_t ms, mk_str *out)
{
    struct duda_listener *l = d->listener;
    int e = 0;
    *out = MK_ABSENT;
    if (!l)
        return -EINVAL;
    if (d->ended)
        return duda_suspend(d);
    struct mk_alarm *alarm = ms ? mk_alarm_new(d->home->worker, on_late, d) : NULL;
    if (ms && !alarm)
        return -ENOMEM;
    d->is_late = false;
    if (alarm)
        mk_alarm_set(alarm, ms);
    while (!l->n && !d->is_late && !e)
        e = duda_suspend(d);
    mk_alarm_free(alarm);
    if (e || !l->n)
        return e ? e : -ETIMEDOUT;
    *out = duda_copy(d, mk_buf_str(&l->waiting[l->first]));
    drop_first(l);
    return out->p ? 0 : -ENOMEM;
}
