/* SPDX-License-Identifier: Apache-2.0 */
/* Rations long work, such as handshakes: each turn of the loop does only a few pieces of it. Further pieces
 * wait in a queue, first come, first served, and other connections are served in between. */
#ifndef MK_PROTO_HANDSHAKE_QUEUE_H
#define MK_PROTO_HANDSHAKE_QUEUE_H

#include "net/loop.h"

enum { MK_HANDSHAKES_PER_ITERATION = 8 }; /* pieces per turn */

struct mk_handshake_queue {
    struct mk_loop *loop;
    struct mk_loop_task task;
    struct mk_loop_task *first, *last; /* the queue */
    unsigned left;                     /* pieces that this turn may still do */
    bool task_set, serving;
};

void mk_handshake_queue_init(struct mk_handshake_queue *t, struct mk_loop *loop);
/* May the caller do a piece now? False: add a task, and ask again when it runs. */
bool mk_handshake_queue_try_start(struct mk_handshake_queue *t) MK_MUST_USE;
void mk_handshake_queue_push(struct mk_handshake_queue *t, struct mk_loop_task *task);

#endif
