/* SPDX-License-Identifier: Apache-2.0 */
/* A request of a handler to a server, and FIFO queues of requests. A zeroed queue is empty. */
#ifndef DUDA_PACKAGES_COMMON_PACKAGE_REQUEST_QUEUE_H
#define DUDA_PACKAGES_COMMON_PACKAGE_REQUEST_QUEUE_H

#include <stddef.h>
#include <stdint.h>

/* Must be the first member of every request struct. */
struct package_request {
    struct package_request *next;
    uint64_t due_ms; /* the request fails with -ETIMEDOUT at this time */
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

/* Returns NULL if the queue is empty. */
static inline struct package_request *package_request_queue_pop(struct package_request_queue *all)
{
    struct package_request *r = all->first;
    if (!r)
        return NULL;
    all->first = r->next;
    all->n--;
    return r;
}

/* Pops the first request if its deadline has passed; otherwise returns NULL. */
static inline struct package_request *package_request_queue_pop_due(struct package_request_queue *all,
                                                                    uint64_t now)
{
    return all->first && all->first->due_ms <= now ? package_request_queue_pop(all) : NULL;
}

/* Moves all requests of `from` to the end of `to`. */
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
