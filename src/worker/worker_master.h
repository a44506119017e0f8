/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker asks the master for. */
#ifndef MK_WORKER_WORKER_MASTER_H
#define MK_WORKER_WORKER_MASTER_H

#include "worker/worker_type.h"

/* If the log has reached its size: asks the master to rotate it, and repeats that only after a pause. */
void mk_worker_request_rotation(struct mk_worker *w, struct mk_logwriter *log);

#endif
