/* SPDX-License-Identifier: Apache-2.0 */
/* A budget for useless frames of an HTTP/2 client. Each costs something, and the budget is restored over
 * time. When it is used up, the connection ends. */
#ifndef MK_HTTP2_H2_ABUSE_H
#define MK_HTTP2_H2_ABUSE_H

#include "http2/h2_types.h"

enum { MK_H2_RESET_COST = 5 }; /* of a request that was started in vain */

void mk_h2_abuse_init(struct mk_h2 *h2);
/* False: the budget is used up, and the connection has failed. */
bool mk_h2_abuse_charge(struct mk_h2 *h2, uint32_t cost, enum mk_h2_reason why);

#endif
