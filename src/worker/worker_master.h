/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a worker to the master. */
#ifndef MK_WORKER_WORKER_MASTER_H
#define MK_WORKER_WORKER_MASTER_H

#include "worker/worker_type.h"

/* If the log is full, asks the master to rotate it; asks again only after a pause. */
void mk_worker_request_rotation(struct mk_worker *w, struct mk_logwriter *log);

#endif
