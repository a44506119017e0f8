/* SPDX-License-Identifier: Apache-2.0 */
/* A request of a handler to a server, and lists of them: first come, first served. An empty list is zero. */
#ifndef DUDA_PACKAGES_REQUEST_QUEUE_H
#define DUDA_PACKAGES_REQUEST_QUEUE_H

#include <stddef.h>
#include <stdint.h>

/* What the struct of a request begins with. */
struct package_request {
    struct package_request *next;
    uint64_t due_ms; /* it fails with -ETIMEDOUT then */
};

struct package_request_queue {
    struct package_request *first, *last;
    size_t n;
};

static inline void package_request_queue_push(struct package_request_queue *all, struct package_request *r)
{
    r->next = NULL;
    if (all->first)
        all->last->next = r;
    else
        all->first = r;
    all->last = r;
    all->n++;
}

/* NULL: it is empty. */
static inline struct package_request *package_request_queue_pop(struct package_request_queue *all)
{
    struct package_request *r = all->first;
    if (!r)
        return NULL;
    all->first = r->next;
    all->n--;
    return r;
}

/* Pops the first one if it is due by now. */
static inline struct package_request *package_request_queue_pop_due(struct package_request_queue *all,
                                                                    uint64_t now)
{
    return all->first && all->first->due_ms <= now ? package_request_queue_pop(all) : NULL;
}

/* Appends all of `from`, which is empty then. */
static inline void package_request_queue_append(struct package_request_queue *to,
                                                struct package_request_queue *from)
{
    if (!from->first)
        return;
    if (to->first)
        to->last->next = from->first;
    else
        to->first = from->first;
    to->last = from->last;
    to->n += from->n;
    *from = (struct package_request_queue){NULL, NULL, 0};
}

#endif
