/* SPDX-License-Identifier: Apache-2.0 */
/* Effective limits of a path on a host. */
#ifndef MK_WEB_EFFECTIVE_LIMITS_H
#define MK_WEB_EFFECTIVE_LIMITS_H

#include "web/exchange.h"
#include "web/vhost.h"

/* Returns the stricter value of each limit, with the log of `own`. */
struct mk_request_limits mk_effective_limits_stricter(const struct mk_request_limits *own,
                                                      const struct mk_request_limits *other);

/* May an exceeded regex limit be logged? Only once a second, so that clients cannot flood the log. */
bool mk_effective_limits_may_log(struct mk_exchange *x);

/* Returns the limits of the request's [LOCATION], or of its host; if variants of the path belong to other
 * locations, the strictest value of each limit. The host must have locations. */
const struct mk_request_limits *mk_effective_limits_find(struct mk_exchange *x);

/* Logs that the body exceeds `max`, and which setting to raise; `whole`: the request exceeds
 * MaxRequestSize. */
void mk_effective_limits_log_too_long(struct mk_exchange *x, uint64_t max, bool whole) MK_COLD;

#endif
