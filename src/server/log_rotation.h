/* SPDX-License-Identifier: Apache-2.0 */
/* Log rotation in the master: reopens logs that were moved, and rotates logs that reached their maximum size.
 * Every worker gets the new descriptors. */
#ifndef MK_SERVER_LOG_ROTATION_H
#define MK_SERVER_LOG_ROTATION_H

#include "server/workers.h"

/* Reopens all logs of the generation. */
void mk_log_rotation_reopen(struct mk_workers *w, struct mk_config_generation *g);
/* Handles a worker's report that a log is full. If the log is still full, because no other worker reported it
 * first, FILE becomes FILE.1, and so on. `gs`: the generations that may use the log. */
void mk_log_rotation_rotate_if_full(struct mk_workers *w, struct mk_config_generation *const *gs, size_t n,
                                    mk_str where);

#endif
