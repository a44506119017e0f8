/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that a control channel has no room for: kept in order until they can be sent. */
#ifndef MK_SERVER_CONTROL_QUEUE_H
#define MK_SERVER_CONTROL_QUEUE_H

#include "worker/control.h"

struct mk_control_queue_entry;

struct mk_control_queue {
    struct mk_control_queue_entry *first, *last;
};

/* Sends the message, or keeps a copy (and a duplicate of the descriptor). */
mk_err mk_control_queue_send(struct mk_control_queue *o, int end,
                             const struct mk_control_message *m) MK_MUST_USE;
/* Sends pending messages: 0 when none is left, -EAGAIN when the channel is full. */
mk_err mk_control_queue_flush(struct mk_control_queue *o, int end) MK_MUST_USE;
void mk_control_queue_clear(struct mk_control_queue *o);

#endif
