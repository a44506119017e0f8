/* SPDX-License-Identifier: Apache-2.0 */
/* A request of a handler to a server, and lists of them: first come, first served. An empty list is zero. */
#ifndef DUDA_PACKS_REQUEST_H
#define DUDA_PACKS_REQUEST_H

#include <stddef.h>
#include <stdint.h>

/* What the struct of a request begins with. */
struct pack_request {
    struct pack_request *next;
    uint64_t due_ms; /* it fails with -ETIMEDOUT then */
};

struct pack_requests {
    struct pack_request *first, *last;
    size_t n;
};

static inline void pack_requests_push(struct pack_requests *all, struct pack_request *r)
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
static inline struct pack_request *pack_requests_pop(struct pack_requests *all)
{
    struct pack_request *r = all->first;
    if (!r)
        return NULL;
    all->first = r->next;
    all->n--;
    return r;
}

/* Pops the first one if it is due by now. */
static inline struct pack_request *pack_requests_pop_due(struct pack_requests *all, uint64_t now)
{
    return all->first && all->first->due_ms <= now ? pack_requests_pop(all) : NULL;
}

/* Appends all of `from`, which is empty then. */
static inline void pack_requests_append(struct pack_requests *to, struct pack_requests *from)
{
    if (!from->first)
        return;
    if (to->first)
        to->last->next = from->first;
    else
        to->first = from->first;
    to->last = from->last;
    to->n += from->n;
    *from = (struct pack_requests){NULL, NULL, 0};
}

#endif
