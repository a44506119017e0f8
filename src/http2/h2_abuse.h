/* SPDX-License-Identifier: Apache-2.0 */
/* Abuse budget: each useless frame of an HTTP/2 client is charged to the budget of its connection, which
 * refills over time. When the budget is used up, the connection is closed. */
#ifndef MK_HTTP2_H2_ABUSE_H
#define MK_HTTP2_H2_ABUSE_H

#include "http2/h2_types.h"

enum { MK_H2_RESET_COST = 5 }; /* cost of a stream that the client resets, or that we reset on an error */

void mk_h2_abuse_init(struct mk_h2 *h2);
/* Charges `cost` to the budget. False: the budget is used up, and the connection has failed. */
bool mk_h2_abuse_charge(struct mk_h2 *h2, uint32_t cost, enum mk_h2_reason reason);

#endif
