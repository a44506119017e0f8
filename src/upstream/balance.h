/* SPDX-License-Identifier: Apache-2.0 */
/* Load balancing: chooses the backend for a request. */
#ifndef MK_UPSTREAM_BALANCE_H
#define MK_UPSTREAM_BALANCE_H

#include "upstream/pool_type.h"

/* Chooses a backend that is up and not yet tried: a primary server, or else a backup, or else, if all servers
 * have failed, a failed one. NULL: no server is usable. */
struct mk_backend *mk_balance_choose(struct mk_backend_set *g, const struct mk_upstream_conn_options *options,
                                     uint64_t avoid);

#endif
