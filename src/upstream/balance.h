/* SPDX-License-Identifier: Apache-2.0 */
/* Load balancing: chooses the backend for a request. */
#ifndef MK_UPSTREAM_BALANCE_H
#define MK_UPSTREAM_BALANCE_H

#include "upstream/pool_type.h"

/* Chooses a backend that is up and not in `avoid`: from the primary servers, else from the backups, else, if
 * all have failed, from the failed ones. NULL: no server is usable. */
struct mk_backend *mk_balance_choose(struct mk_backend_set *g, const struct mk_upstream_conn_options *options,
                                     uint64_t avoid);

#endif
