/* SPDX-License-Identifier: Apache-2.0 */
/* Wakes the loops of all workers. */
#ifndef MK_LIB_WORKER_WAKEUP_H
#define MK_LIB_WORKER_WAKEUP_H

#include "lib/server_type.h"

/* Async-signal-safe, and callable from any thread. */
void mk_worker_wakeup_all(struct mk_server *s);
/* Waits until no caller uses the workers any longer. Call it before freeing a loop. */
void mk_worker_wakeup_wait(struct mk_server *s);

#endif
