/* SPDX-License-Identifier: Apache-2.0 */
/* Rations long work, such as handshakes: each turn of the loop does only a few pieces of it. Further pieces
 * wait in a queue, first come, first served, and other connections are served in between. */
#ifndef MK_PROTO_TURNS_H
#define MK_PROTO_TURNS_H

#include "net/loop.h"

enum { MK_TURNS_MAX = 8 }; /* pieces per turn */

struct mk_turns {
    struct mk_loop *loop;
    struct mk_loop_task task;
    struct mk_loop_task *first, *last; /* the queue */
    unsigned left;                     /* pieces that this turn may still do */
    bool task_set, serving;
};

void mk_turns_init(struct mk_turns *t, struct mk_loop *loop);
/* May the caller do a piece now? False: add a task, and ask again when it runs. */
bool mk_turns_begin(struct mk_turns *t) MK_MUST_USE;
void mk_turns_add(struct mk_turns *t, struct mk_loop_task *task);

#endif
