/* SPDX-License-Identifier: Apache-2.0 */
#include "common/package_wait_queue.h"

/* A waiter, on the stack of its handler. */
struct package_waiter {
    struct duda_wait wait;          /* must be first */
    struct package_wait_queue *all; /* NULL: no longer in the queue */
    struct package_waiter *next;
    void *item;
    int error;
};

void package_wait_queue_init(struct package_wait_queue *all)
{
    *all = (struct package_wait_queue){.last = &all->first};
}

static void remove_waiter(struct duda_wait *w)
{
    struct package_waiter *mine = (struct package_waiter *)w;
    if (!mine->all)
        return;
    struct package_waiter **at = &mine->all->first;
    while (*at != mine)
        at = &(*at)->next;
    *at = mine->next;
    if (!*at)
        mine->all->last = at;
    mine->all->n--;
}

int package_wait_queue_wait(struct package_wait_queue *all, struct duda_ctx *d, void **out)
{
    struct package_waiter mine = {.item = NULL};
    int e = duda_wait_begin(d, &mine.wait, remove_waiter);
    if (e)
        return e;
    mine.all = all;
    *all->last = &mine;
    all->last = &mine.next;
    all->n++;
    e = duda_wait_suspend(&mine.wait);
    duda_wait_end(&mine.wait);
    *out = mine.item;
    return e ? e : mine.error;
}

static void wake_first_waiter(struct package_wait_queue *all, void *item, int error)
{
    struct package_waiter *first = all->first;
    all->first = first->next;
    if (!all->first)
        all->last = &all->first;
    all->n--;
    first->all = NULL;
    first->item = item;
    first->error = error;
    duda_wait_wake(&first->wait);
}

bool package_wait_queue_hand_over(struct package_wait_queue *all, void *item)
{
    if (!all->first)
        return false;
    wake_first_waiter(all, item, 0);
    return true;
}

void package_wait_queue_fail_all(struct package_wait_queue *all, int error)
{
    while (all->first)
        wake_first_waiter(all, NULL, error);
}
