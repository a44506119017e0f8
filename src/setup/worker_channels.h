/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets for messages between workers, one per worker index of a generation. The master opens them before it
 * starts the first worker. Every worker inherits them, so queued messages survive the receiving worker and go
 * to its successor. */
#ifndef MK_SETUP_WORKER_CHANNELS_H
#define MK_SETUP_WORKER_CHANNELS_H

#include "setup/config_generation_type.h"

/* Opens one channel per configured worker if a plugin wants messages; otherwise none, which is not an error.
 * After an error, channels already opened stay open until mk_worker_channels_close(). */
mk_err mk_worker_channels_open(struct mk_config_generation *g) MK_MUST_USE;
/* Call this in the worker with that index: closes the receiving ends of the other workers. */
void mk_worker_channels_keep_own(struct mk_config_generation *g, unsigned index);
void mk_worker_channels_close(struct mk_config_generation *g);

#endif
