/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a worker to the master and, through it, to other workers. Without a master they go to the
 * worker itself. */
#ifndef MK_SERVER_WORKER_BUS_H
#define MK_SERVER_WORKER_BUS_H

#include "server/worker_type.h"

/* `master_fd`: its end of the control channel, owned by the caller; -1: there is no master. */
void mk_worker_bus_init(struct mk_worker *w, int master_fd);
void mk_worker_bus_fini(struct mk_worker *w);
/* The master is gone. */
void mk_worker_bus_cut(struct mk_worker *w);

/* A message for that plugin has come. */
void mk_worker_deliver(struct mk_worker *w, mk_str plugin, mk_str message);
/* If the log has reached its size: asks the master to rotate it, and repeats that only after a pause. */
void mk_worker_watch_log(struct mk_worker *w, struct mk_logwriter *log);

#endif
