/* SPDX-License-Identifier: Apache-2.0 */
/* The request target that the server behind gets. */
#ifndef PROXY_TARGET_H
#define PROXY_TARGET_H

#include "route.h"

/* Lives as long as the request. Absent: no memory, or a path that cannot be written without a doubt about
 * what it means. */
mk_str proxy_target_make(struct mk_request *request, const struct proxy_route *route);

/* Does a path that is still encoded begin as the route's target replaces it? */
bool proxy_target_is_below(const struct proxy_route *route, mk_str raw);
/* The path and query with the target's path in front. Absent: no memory. */
mk_str proxy_target_replace(struct mk_request *request, const struct proxy_route *route, mk_str raw);
/* Would what follows the prefix of a decoded path begin with a slash that the server behind may decode? */
bool proxy_target_hides_slash(const struct proxy_route *route, mk_str path);

#endif
