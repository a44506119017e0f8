/* SPDX-License-Identifier: Apache-2.0 */
/* Which limits hold for a path of a host. */
#ifndef MK_WEB_EFFECTIVE_LIMITS_H
#define MK_WEB_EFFECTIVE_LIMITS_H

#include "web/exchange.h"
#include "web/vhost.h"

/* Of each limit the stricter one; the log of `own`. */
struct mk_request_limits mk_effective_limits_stricter(const struct mk_request_limits *own,
                                                      const struct mk_request_limits *other);

/* May a search that was given up be logged? Once a second at most: a client must not fill the log. */
bool mk_effective_limits_may_log(struct mk_exchange *x);

/* Those of the [LOCATION] that has the path of the request, or of its host; of each limit the strictest one
 * where variants of the path belong to other locations. The host has locations. */
const struct mk_request_limits *mk_effective_limits_find(struct mk_exchange *x);

/* Logs that the content is longer than `max`, and which key to raise; `whole`: MaxRequestSize. */
void mk_effective_limits_log_too_long(struct mk_exchange *x, uint64_t max, bool whole) MK_COLD;

#endif
