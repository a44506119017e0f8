/* SPDX-License-Identifier: Apache-2.0 */
/* The request target that the server behind gets. */
#ifndef PROXY_TARGET_H
#define PROXY_TARGET_H

#include "route.h"

/* Lives as long as the request. Absent: no memory, or a path that cannot be written without a doubt about
 * what it means. */
mk_str proxy_target_make(struct mk_request *request, const struct proxy_route *route);

#endif
