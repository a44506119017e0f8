/* SPDX-License-Identifier: Apache-2.0 */
/* Which server serves a request. */
#ifndef MK_UPSTREAM_BALANCE_H
#define MK_UPSTREAM_BALANCE_H

#include "upstream/pool_type.h"

/* The server that the options leads to, of those that are up and not in `avoid`: the first ones, or else the
 * backups, or else, if all have failed, one of those. NULL: there is none. */
struct mk_backend *mk_balance_choose(struct mk_backend_set *g, const struct mk_upstream_conn_options *options,
                                     uint64_t avoid);

#endif
