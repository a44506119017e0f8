/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/handshake_queue.h"

static void schedule_queue(struct mk_handshake_queue *t)
{
    if (!t->task_set)
        mk_loop_defer(t->loop, &t->task);
    t->task_set = true;
}

static void run_queued_handshakes(struct mk_loop_task *own)
{
    struct mk_handshake_queue *t = MK_CONTAINER(own, struct mk_handshake_queue, task);
    t->task_set = false;
    t->left = MK_HANDSHAKES_PER_ITERATION;
    t->serving = true;
    while (t->first && t->left) {
        struct mk_loop_task *task = t->first;
        t->first = task->next;
        task->run(task); /* continues the handshake, or frees the connection if it was closed */
    }
    t->serving = false;
    if (t->first)
        schedule_queue(t);
}

void mk_handshake_queue_init(struct mk_handshake_queue *t, struct mk_loop *loop)
{
    *t = (struct mk_handshake_queue){
        .loop = loop, .task = {.run = run_queued_handshakes}, .left = MK_HANDSHAKES_PER_ITERATION};
}

bool mk_handshake_queue_try_start(struct mk_handshake_queue *t)
{
    if (!t->left || (t->first && !t->serving))
        return false;
    t->left--;
    schedule_queue(t); /* the deferred task resets `left` */
    return true;
}

void mk_handshake_queue_push(struct mk_handshake_queue *t, struct mk_loop_task *task)
{
    task->next = NULL;
    if (t->first)
        t->last->next = task;
    else
        t->first = task;
    t->last = task;
    schedule_queue(t);
}
