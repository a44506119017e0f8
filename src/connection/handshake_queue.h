/* SPDX-License-Identifier: Apache-2.0 */
/* Limits TLS handshakes, which are expensive, to a few per loop iteration. Further handshakes wait in a FIFO
 * queue, so that other connections are served in between. */
#ifndef MK_CONNECTION_HANDSHAKE_QUEUE_H
#define MK_CONNECTION_HANDSHAKE_QUEUE_H

#include "event/loop.h"

enum { MK_HANDSHAKES_PER_ITERATION = 8 };

struct mk_handshake_queue {
    struct mk_loop *loop;
    struct mk_loop_task task;
    struct mk_loop_task *first, *last; /* the queue */
    unsigned left;                     /* handshakes left in this iteration */
    bool task_set, serving;
};

void mk_handshake_queue_init(struct mk_handshake_queue *t, struct mk_loop *loop);
/* May the caller do a step of a handshake now? False: queue a task with mk_handshake_queue_push(), and try
 * again when the task runs. */
bool mk_handshake_queue_try_start(struct mk_handshake_queue *t) MK_MUST_USE;
void mk_handshake_queue_push(struct mk_handshake_queue *t, struct mk_loop_task *task);

#endif
