/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that a control channel has no room for: kept in order until they can be sent. */
#ifndef MK_SERVER_OUTBOX_H
#define MK_SERVER_OUTBOX_H

#include "worker/control.h"

struct mk_letter;

struct mk_outbox {
    struct mk_letter *first, *last;
};

/* Sends the message, or keeps a copy (and a duplicate of the descriptor). */
mk_err mk_outbox_send(struct mk_outbox *o, int end, const struct mk_control_message *m) MK_MUST_USE;
/* Sends pending messages: 0 when none is left, -EAGAIN when the channel is full. */
mk_err mk_outbox_flush(struct mk_outbox *o, int end) MK_MUST_USE;
void mk_outbox_clear(struct mk_outbox *o);

#endif
