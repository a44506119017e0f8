/* SPDX-License-Identifier: Apache-2.0 */
/* Calls posted to a loop by other threads, run in order. */
#ifndef MK_EVENT_POST_QUEUE_H
#define MK_EVENT_POST_QUEUE_H

#include "event/loop.h"

/* A posted call. */
struct mk_post {
    struct mk_post *before;
    void (*fn)(void *ctx);
    void *ctx;
    bool is_allocated; /* allocated by mk_post_queue_push(), and freed before fn(ctx) is called */
};

struct mk_post_queue {
    struct mk_loop *loop;
    struct mk_post *_Atomic last; /* last posted call; each call links to its predecessor */
};

void mk_post_queue_init(struct mk_post_queue *b, struct mk_loop *loop);
/* Posts fn(ctx) from any thread and wakes the loop, whose wakeup handler must call mk_post_queue_run(). 0:
 * fn(ctx) will be called. -ENOMEM: out of memory. -ESHUTDOWN: the queue is closed. */
mk_err mk_post_queue_push(struct mk_post_queue *b, void (*fn)(void *ctx), void *ctx) MK_MUST_USE;
/* Like mk_post_queue_push(), but the caller provides the memory, which must live until fn(ctx) begins.
 * Returns 0 or -ESHUTDOWN. */
mk_err mk_post_queue_push_static(struct mk_post_queue *b, struct mk_post *p) MK_MUST_USE;
/* Runs the posted calls in the loop's thread. Calls that they post run in the next mk_post_queue_run(). */
void mk_post_queue_run(struct mk_post_queue *b);
/* Runs the posted calls and closes the queue. */
void mk_post_queue_close(struct mk_post_queue *b);

#endif
