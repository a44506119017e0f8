/* SPDX-License-Identifier: Apache-2.0 */
/* Patience with a client of HTTP/2. What makes us work and is of no use to anybody costs some; it comes back
 * with time. When none is left the connection ends. */
#ifndef MK_PROTO_H2_GUARD_H
#define MK_PROTO_H2_GUARD_H

#include "proto/h2.h"

enum { MK_H2_RESET_COST = 5 }; /* of a request that was begun for nothing */

void mk_h2_guard_init(struct mk_h2 *h2);
/* False: that was too much, and the connection has failed. */
bool mk_h2_guard_spend(struct mk_h2 *h2, uint32_t cost, enum mk_h2_reason why);

#endif
