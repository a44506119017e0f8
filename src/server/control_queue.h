/* SPDX-License-Identifier: Apache-2.0 */
/* Queue of messages for a control channel that is full, sent in order. */
#ifndef MK_SERVER_CONTROL_QUEUE_H
#define MK_SERVER_CONTROL_QUEUE_H

#include "worker/control.h"

struct mk_control_queue_entry;

struct mk_control_queue {
    struct mk_control_queue_entry *first, *last;
};

/* Sends the message or, if the channel is full, queues a copy with a duplicate of its descriptor. */
mk_err mk_control_queue_send(struct mk_control_queue *o, int end,
                             const struct mk_control_message *m) MK_MUST_USE;
/* Sends queued messages; drops a message that cannot be sent. Returns 0 if the queue is empty, or -EAGAIN if
 * the channel is full. */
mk_err mk_control_queue_flush(struct mk_control_queue *o, int end) MK_MUST_USE;
void mk_control_queue_clear(struct mk_control_queue *o);

#endif
