/* SPDX-License-Identifier: Apache-2.0 */
#include "event/deferred.h"

#include "base/mem.h"

struct mk_deferred {
    struct mk_loop_task task;
    struct mk_loop *loop;
    bool set;                  /* the task is in the loop's list */
    void (*on_end)(void *ctx); /* NULL: freed as soon as the task has run */
    void *ctx;
};

static void run_deferred(struct mk_loop_task *task)
{
    struct mk_deferred *t = MK_CONTAINER(task, struct mk_deferred, task);
    t->set = false;
    if (t->on_end)
        t->on_end(t->ctx);
    else
        mk_mem_free(t);
}

struct mk_deferred *mk_deferred_new_on(struct mk_loop *loop, void (*on_end)(void *ctx), void *ctx)
{
    struct mk_deferred *t = mk_mem_alloc(sizeof *t);
    if (t)
        *t = (struct mk_deferred){.task = {.run = run_deferred}, .loop = loop, .on_end = on_end, .ctx = ctx};
    return t;
}

void mk_deferred_post(struct mk_deferred *t)
{
    if (!t->set)
        mk_loop_defer_to_end(t->loop, &t->task);
    t->set = true;
}

/* Keeps the memory while the task is in the loop's list. */
void mk_deferred_free(struct mk_deferred *t)
{
    if (t && t->set)
        t->on_end = NULL;
    else
        mk_mem_free(t);
}
