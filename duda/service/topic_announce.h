/* SPDX-License-Identifier: Apache-2.0 */
/* Tells other machines, through the relay, how many subscribers the topics have on this machine. A background
 * task in each worker announces the topics to which the worker has subscribers. */
#ifndef DUDA_SERVICE_TOPIC_ANNOUNCE_H
#define DUDA_SERVICE_TOPIC_ANNOUNCE_H

#include "service/duda_ctx.h"

/* Notes that a counted subscriber of this worker has come (1) or left (-1). */
void duda_topic_announce_change(struct duda_worker_ctx *worker_ctx, mk_str topic, int change);
/* Ends the task. Call it when the relay is removed. */
void duda_topic_announce_stop(struct duda_worker_ctx *worker_ctx);

#endif
