/* SPDX-License-Identifier: Apache-2.0 */
/* Active checks of the health of a server, by the first worker. */
#ifndef MK_UPSTREAM_HEALTH_CHECK_H
#define MK_UPSTREAM_HEALTH_CHECK_H

#include "upstream/pool_type.h"

/* Checks at once, and then each HealthInterval. on_down() is called when the server fails its check. NULL: no memory. */
struct mk_health_checker *mk_health_check_start(struct mk_backend *o, void (*on_down)(struct mk_backend *o));
/* NULL is fine. */
void mk_health_check_stop(struct mk_health_checker *c);

#endif
