/* SPDX-License-Identifier: Apache-2.0 */
/* Active checks of the health of a server, by the first worker. */
#ifndef MK_UPSTREAM_CHECK_H
#define MK_UPSTREAM_CHECK_H

#include "upstream/pool_type.h"

/* Checks at once, and then each HealthTime. on_out() is called when the server fails its check. NULL: no memory. */
struct mk_check *mk_check_start(struct mk_outlet *o, void (*on_out)(struct mk_outlet *o));
/* NULL is fine. */
void mk_check_stop(struct mk_check *c);

#endif
