/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/turns.h"

static void set_task(struct mk_turns *t)
{
    if (!t->task_set)
        mk_loop_defer(t->loop, &t->task);
    t->task_set = true;
}

static void serve(struct mk_task *task)
{
    struct mk_turns *t = MK_CONTAINER(task, struct mk_turns, task);
    t->task_set = false;
    t->left = MK_TURNS_MAX;
    t->serving = true;
    while (t->first && t->left) {
        struct mk_task *who = t->first;
        t->first = who->next;
        who->run(who); /* it takes its piece, or does not want it any more */
    }
    t->serving = false;
    if (t->first)
        set_task(t);
}

void mk_turns_init(struct mk_turns *t, struct mk_loop *loop)
{
    *t = (struct mk_turns){.loop = loop, .task = {.run = serve}, .left = MK_TURNS_MAX};
}

bool mk_turns_take(struct mk_turns *t)
{
    if (!t->left || (t->first && !t->serving))
        return false;
    t->left--;
    set_task(t); /* the next turn has all of them again */
    return true;
}

void mk_turns_add(struct mk_turns *t, struct mk_task *who)
{
    who->next = NULL;
    if (t->first)
        t->last->next = who;
    else
        t->first = who;
    t->last = who;
    set_task(t);
}
