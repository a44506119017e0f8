/* SPDX-License-Identifier: Apache-2.0 */
/* Active health checks of a server, run by the first worker. */
#ifndef MK_UPSTREAM_HEALTH_CHECK_H
#define MK_UPSTREAM_HEALTH_CHECK_H

#include "upstream/pool_type.h"

/* Checks immediately, then every HealthInterval, or more often while the server fails. Calls on_down() when
 * the server fails its check. NULL: out of memory. */
struct mk_health_checker *mk_health_check_start(struct mk_backend *o, void (*on_down)(struct mk_backend *o));
/* Accepts NULL. */
void mk_health_check_stop(struct mk_health_checker *c);

#endif
