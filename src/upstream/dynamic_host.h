/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts of a dynamic upstream: each request names its host. A worker creates a backend set for each host, and
 * at the maximum number, replaces the unused set that was used least recently. */
#ifndef MK_UPSTREAM_DYNAMIC_HOST_H
#define MK_UPSTREAM_DYNAMIC_HOST_H

#include "upstream/pool_type.h"

/* Returns the backend set for the host and port. NULL: all hosts of the upstream are in use, or out of
 * memory. */
struct mk_backend_set *mk_dynamic_host_find(struct mk_pool *p, const struct mk_upstream *u, mk_str host,
                                            uint16_t port);
/* Calls fn for the backend set of each host. */
void mk_dynamic_host_each(struct mk_pool *p, void (*fn)(struct mk_backend_set *g));
/* Frees all hosts, whose connections must all be idle. */
void mk_dynamic_host_free_all(struct mk_pool *p);

#endif
