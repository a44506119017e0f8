/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker tells the master and, through it, other workers. Where there is no master it talks to itself.
 */
#ifndef MK_SERVER_WORKER_BUS_H
#define MK_SERVER_WORKER_BUS_H

#include "server/worker.h"

/* `master_fd`: its end of the control channel, which stays the caller's; -1: there is no master. */
void mk_worker_bus_init(struct mk_worker *w, int master_fd);
void mk_worker_bus_fini(struct mk_worker *w);
/* The master is gone. */
void mk_worker_bus_cut(struct mk_worker *w);

/* A message for that plugin has come. */
void mk_worker_deliver(struct mk_worker *w, mk_str plugin, mk_str message);
/* If the log has grown to its size: asks the master, once in a while, to put another one in its place. */
void mk_worker_watch_log(struct mk_worker *w, struct mk_logfile *f);

#endif
