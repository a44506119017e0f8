/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers that hear rooms. */
#include <duda/scope.h>
#include <errno.h>

#include "service/membership.h"
#include "service/task.h"

/* What was said, behind the name of its room. */
struct heard {
    struct mk_buf bytes;
    size_t name_len;
    enum mk_websocket_kind kind;
};

struct duda_listener {
    struct duda_wait wait; /* for a message; the first */
    struct duda *d;
    struct mk_timer timer; /* of that */
    struct duda_guest *members;
    unsigned first, n; /* of those that wait */
    uint32_t missed;   /* before the first one */
    struct heard waiting[DUDA_ROOM_WAITING];
};

static struct duda_hall hall_of(const struct duda *d)
{
    return (struct duda_hall){d->home, duda_scope(d)};
}

static void drop_first(struct duda_listener *l)
{
    mk_buf_free(&l->waiting[l->first].bytes);
    l->first = (l->first + 1) % DUDA_ROOM_WAITING;
    l->n--;
}

static void hear(void *owner, struct duda_news *news)
{
    struct duda_listener *l = owner;
    if (l->n == DUDA_ROOM_WAITING) {
        drop_first(l);
        l->missed++;
    }
    struct heard *h = &l->waiting[(l->first + l->n) % DUDA_ROOM_WAITING];
    mk_str room = duda_membership_name(duda_scope(l->d), news->room);
    *h = (struct heard){mk_buf_growing(DUDA_ROOM_NAME + DUDA_ROOM_MESSAGE), room.len, news->kind};
    mk_buf_add(&h->bytes, room);
    mk_buf_add(&h->bytes, news->text);
    if (h->bytes.failed) {
        mk_buf_free(&h->bytes);
        l->missed++;
    } else {
        l->n++;
    }
    duda_wait_wake(&l->wait);
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
    return duda_membership_begin(hall_of(d), &d->listener->members, room, d->listener, hear);
}

void duda_room_quit(struct duda *d, mk_str room)
{
    if (d->listener)
        duda_membership_leave(hall_of(d), &d->listener->members, room);
}

static void on_late(struct mk_timer *t)
{
    struct duda_listener *l = MK_CONTAINER(t, struct duda_listener, timer);
    duda_wait_wake(&l->wait);
}

static void end_wait(struct duda_wait *w)
{
    mk_timer_stop(&((struct duda_listener *)w)->timer);
}

static int wait_for_message(struct duda_listener *l, uint32_t ms)
{
    if (l->n)
        return 0;
    mk_timer_init(&l->timer, on_late);
    if (ms)
        mk_timer_set(&l->timer, l->d->home->worker, ms);
    int e = duda_wait_suspend(&l->wait);
    return e ? e : l->n ? 0 : -ETIMEDOUT;
}

static int await(struct duda *d, uint32_t ms)
{
    struct duda_listener *l = d->listener;
    if (!l)
        return -EINVAL;
    int e = duda_wait_begin(d, &l->wait, end_wait);
    if (e)
        return e;
    e = wait_for_message(l, ms);
    duda_wait_end(&l->wait);
    return e;
}

int duda_room_next(struct duda *d, uint32_t ms, struct duda_room_message *out)
{
    struct duda_listener *l = d->listener;
    *out = (struct duda_room_message){.kind = MK_WEBSOCKET_TEXT};
    int e = await(d, ms);
    if (e)
        return e;
    struct heard *h = &l->waiting[l->first];
    mk_str all = mk_buf_str(&h->bytes);
    out->room = duda_copy(d, mk_str_first(all, h->name_len));
    out->text = duda_copy(d, mk_str_skip(all, h->name_len));
    out->kind = h->kind;
    out->missed = l->missed;
    l->missed = 0;
    drop_first(l);
    return out->room.p && out->text.p ? 0 : -ENOMEM;
}

int duda_room_hear(struct duda *d, uint32_t ms, mk_str *out)
{
    struct duda_room_message m;
    int e = duda_room_next(d, ms, &m);
    *out = e ? MK_ABSENT : m.text;
    return e;
}
