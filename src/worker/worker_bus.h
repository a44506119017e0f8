/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker asks the master for. */
#ifndef MK_WORKER_WORKER_BUS_H
#define MK_WORKER_WORKER_BUS_H

#include "worker/worker_type.h"

/* If the log has reached its size: asks the master to rotate it, and repeats that only after a pause. */
void mk_worker_watch_log(struct mk_worker *w, struct mk_logwriter *log);

#endif
