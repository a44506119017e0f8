/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/turns.h"

static void set_task(struct mk_turns *t)
{
    if (!t->task_set)
        mk_loop_defer(t->loop, &t->task);
    t->task_set = true;
}

static void serve(struct mk_loop_task *own)
{
    struct mk_turns *t = MK_CONTAINER(own, struct mk_turns, task);
    t->task_set = false;
    t->left = MK_TURNS_MAX;
    t->serving = true;
    while (t->first && t->left) {
        struct mk_loop_task *task = t->first;
        t->first = task->next;
        task->run(task); /* does its piece, unless it no longer needs to */
    }
    t->serving = false;
    if (t->first)
        set_task(t);
}

void mk_turns_init(struct mk_turns *t, struct mk_loop *loop)
{
    *t = (struct mk_turns){.loop = loop, .task = {.run = serve}, .left = MK_TURNS_MAX};
}

bool mk_turns_begin(struct mk_turns *t)
{
    if (!t->left || (t->first && !t->serving))
        return false;
    t->left--;
    set_task(t); /* the next turn restores the full number */
    return true;
}

void mk_turns_add(struct mk_turns *t, struct mk_loop_task *task)
{
    task->next = NULL;
    if (t->first)
        t->last->next = task;
    else
        t->first = task;
    t->last = task;
    set_task(t);
}
