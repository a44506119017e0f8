/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of plugins from worker to worker, through the mailboxes of the generation. What a turn of the loop
 * sends to one worker is gathered, and leaves at the end of the turn in packets of many messages. */
#ifndef MK_WORKER_WORKER_MESSAGES_H
#define MK_WORKER_WORKER_MESSAGES_H

#include "worker/worker_type.h"

void mk_worker_messages_init(struct mk_worker *w);
/* From now on, plugins hear what arrives. */
mk_err mk_worker_messages_start(struct mk_worker *w) MK_MUST_USE;
/* Another worker has our place: what arrives is for that one. */
void mk_worker_messages_stop_receiving(struct mk_worker *w);
/* What did not leave in the last turn is lost. */
void mk_worker_messages_fini(struct mk_worker *w);

#endif
