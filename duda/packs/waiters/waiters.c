/* SPDX-License-Identifier: Apache-2.0 */
#include "waiters/waiters.h"

/* On the stack of its handler. */
struct pack_waiter {
    struct duda_wait wait;    /* the first */
    struct pack_waiters *all; /* NULL: it has left the queue */
    struct pack_waiter *next;
    void *one;
    int error;
};

void pack_waiters_init(struct pack_waiters *all)
{
    *all = (struct pack_waiters){.last = &all->first};
}

static void leave(struct duda_wait *w)
{
    struct pack_waiter *mine = (struct pack_waiter *)w;
    if (!mine->all)
        return;
    struct pack_waiter **at = &mine->all->first;
    while (*at != mine)
        at = &(*at)->next;
    *at = mine->next;
    if (!*at)
        mine->all->last = at;
    mine->all->n--;
}

int pack_waiters_wait(struct pack_waiters *all, struct duda *d, void **out)
{
    struct pack_waiter mine = {.one = NULL};
    int e = duda_wait_begin(d, &mine.wait, leave);
    if (e)
        return e;
    mine.all = all;
    *all->last = &mine;
    all->last = &mine.next;
    all->n++;
    e = duda_wait_suspend(&mine.wait);
    duda_wait_end(&mine.wait);
    *out = mine.one;
    return e ? e : mine.error;
}

static void serve_first(struct pack_waiters *all, void *one, int error)
{
    struct pack_waiter *first = all->first;
    all->first = first->next;
    if (!all->first)
        all->last = &all->first;
    all->n--;
    first->all = NULL;
    first->one = one;
    first->error = error;
    duda_wait_wake(&first->wait);
}

bool pack_waiters_give(struct pack_waiters *all, void *one)
{
    if (!all->first)
        return false;
    serve_first(all, one, 0);
    return true;
}

void pack_waiters_fail(struct pack_waiters *all, int error)
{
    while (all->first)
        serve_first(all, NULL, error);
}
