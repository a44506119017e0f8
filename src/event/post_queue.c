/* SPDX-License-Identifier: Apache-2.0 */
#include "event/post_queue.h"

#include <stdatomic.h>

#include "base/mem.h"

/* Replaces `last` when the queue is closed. */
#define CLOSED ((struct mk_post *)1)

void mk_post_queue_init(struct mk_post_queue *b, struct mk_loop *loop)
{
    b->loop = loop;
    atomic_init(&b->last, NULL);
}

mk_err mk_post_queue_push_static(struct mk_post_queue *b, struct mk_post *p)
{
    struct mk_post *before = atomic_load(&b->last);
    do {
        if (before == CLOSED)
            return -ESHUTDOWN;
        p->before = before;
    } while (!atomic_compare_exchange_weak(&b->last, &before, p));
    if (!before) /* otherwise the loop has been woken and has yet to run the queue */
        mk_loop_wakeup(b->loop);
    return 0;
}

mk_err mk_post_queue_push(struct mk_post_queue *b, void (*fn)(void *ctx), void *ctx)
{
    struct mk_post *p = mk_mem_alloc(sizeof *p);
    if (!p)
        return -ENOMEM;
    *p = (struct mk_post){.fn = fn, .ctx = ctx, .is_allocated = true};
    mk_err e = mk_post_queue_push_static(b, p);
    if (e)
        mk_mem_free(p);
    return e;
}

static void run_posts(struct mk_post *last)
{
    struct mk_post *first = NULL;
    while (last) {
        struct mk_post *before = last->before;
        last->before = first;
        first = last;
        last = before;
    }
    while (first) {
        struct mk_post p = *first;
        if (p.is_allocated)
            mk_mem_free(first);
        p.fn(p.ctx);
        first = p.before;
    }
}

void mk_post_queue_run(struct mk_post_queue *b)
{
    run_posts(atomic_exchange(&b->last, NULL));
}

void mk_post_queue_close(struct mk_post_queue *b)
{
    run_posts(atomic_exchange(&b->last, CLOSED));
}
