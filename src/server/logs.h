/* SPDX-License-Identifier: Apache-2.0 */
/* The logs as the master sees to them: opened anew when somebody has moved them away, moved away when they
 * have grown. Every worker gets the new descriptors. */
#ifndef MK_SERVER_LOGS_H
#define MK_SERVER_LOGS_H

#include "server/workers.h"

/* All of that generation. */
void mk_logs_reopen(struct mk_workers *w, struct mk_generation *g);
/* A worker says that the log has grown to its size. If so, and none has been here before: FILE becomes
 * FILE.1, and so on. `gs` are the generations that may have it. */
void mk_logs_rotate(struct mk_workers *w, struct mk_generation *const *gs, size_t n, mk_str where);

#endif
