/* SPDX-License-Identifier: Apache-2.0 */
/* Load balancing: chooses the backend for a request. */
#ifndef MK_UPSTREAM_BALANCE_H
#define MK_UPSTREAM_BALANCE_H

#include "upstream/health.h"
#include "upstream/pool_type.h"

/* Does the administrator admit requests to this backend? `is_sticky`: of its sticky clients. */
static inline bool mk_balance_is_admitted(const struct mk_backend *o, bool is_sticky)
{
    uint32_t mode = __atomic_load_n(o->mode, __ATOMIC_RELAXED);
    return MK_LIKELY(mode == MK_SERVER_ENABLED) || (is_sticky && mode == MK_SERVER_DRAINS);
}

/* May a request try this backend? Failed requests do not prevent this, but failed health checks do. */
static inline bool mk_balance_may_try(const struct mk_backend *o, uint64_t avoid, bool is_sticky)
{
    if (!mk_balance_is_admitted(o, is_sticky))
        return false;
    bool has_addr_or_lookup = o->names.n || mk_resolver_is_pending(&o->names);
    return !(avoid >> o->server->index & 1) && has_addr_or_lookup && !mk_health_is_check_failed(o->server);
}

/* Chooses a backend that is up and not yet tried: a primary server, or else a backup, or else, if all servers
 * have failed, a failed one. NULL: no server is usable. */
struct mk_backend *mk_balance_choose(struct mk_backend_set *g, const struct mk_upstream_conn_options *options,
                                     uint64_t avoid);

#endif
