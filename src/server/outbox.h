/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker's line to the master has no room for now: kept, in its order, until it has. */
#ifndef MK_SERVER_OUTBOX_H
#define MK_SERVER_OUTBOX_H

#include "server/control.h"

enum { MK_OUTBOX_MAX = 1024 * 1024 }; /* bytes of messages of plugins: those beyond are lost */

struct mk_letter;

struct mk_outbox {
    struct mk_letter *first, *last;
    size_t size; /* of what waits */
};

/* Sends, or keeps a copy (and one of the descriptor). -ENOBUFS: it is lost, too much waits already. */
mk_err mk_outbox_send(struct mk_outbox *o, int end, const struct mk_control_message *m) MK_MUST_USE;
/* Goes on with what waits: 0 when nothing waits any more, -EAGAIN when there is no more room. */
mk_err mk_outbox_flush(struct mk_outbox *o, int end) MK_MUST_USE;
void mk_outbox_clear(struct mk_outbox *o);

#endif
