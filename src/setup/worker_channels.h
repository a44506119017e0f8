/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets for messages from worker to worker, one for each place among the workers of a generation. The
 * master opens them before it starts the first worker. Each worker inherits them, so what waits in one
 * outlives the worker that receives from it and is for its successor. */
#ifndef MK_SETUP_WORKER_CHANNELS_H
#define MK_SETUP_WORKER_CHANNELS_H

#include "settings/config_generation_type.h"

/* One for each of the configured workers, if a plugin wants messages; else none, which is no error. On an
 * error, those that were opened stay until mk_worker_channels_close(). */
mk_err mk_worker_channels_open(struct mk_config_generation *g) MK_MUST_USE;
/* In the worker of that place: closes what only others receive from. */
void mk_worker_channels_keep_own(struct mk_config_generation *g, unsigned index);
void mk_worker_channels_close(struct mk_config_generation *g);

#endif
