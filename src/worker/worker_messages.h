/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that plugins send between workers, through sockets that belong to the generation of the
 * configuration. The messages that one loop iteration sends to the same worker are batched into packets,
 * which are sent when the iteration ends. */
#ifndef MK_WORKER_WORKER_MESSAGES_H
#define MK_WORKER_WORKER_MESSAGES_H

#include "worker/worker_type.h"

void mk_worker_messages_init(struct mk_worker *w);
/* Starts delivering messages to plugins. */
mk_err mk_worker_messages_start(struct mk_worker *w) MK_MUST_USE;
/* Stops receiving, because another worker has our index: messages now go to that worker. */
void mk_worker_messages_stop_receiving(struct mk_worker *w);
/* Frees the queues; messages still in them are lost. */
void mk_worker_messages_fini(struct mk_worker *w);

#endif
