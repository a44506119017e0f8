/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets for messages from worker to worker, one for each place among the workers of a generation. The
 * master opens them before it starts the first worker. Each worker inherits them, so what waits in one
 * outlives the worker that receives from it and is for its successor. */
#ifndef MK_SETUP_MAILBOXES_H
#define MK_SETUP_MAILBOXES_H

#include "settings/generation_type.h"

/* One for each of the configured workers, if a plugin wants messages; else none, which is no error. On an
 * error, those that were opened stay until mk_mailboxes_close(). */
mk_err mk_mailboxes_open(struct mk_generation *g) MK_MUST_USE;
/* In the worker of that place: closes what only others receive from. */
void mk_mailboxes_keep(struct mk_generation *g, unsigned index);
void mk_mailboxes_close(struct mk_generation *g);

#endif
