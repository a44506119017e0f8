/* SPDX-License-Identifier: Apache-2.0 */
/* Where a COPY or MOVE leads, as the server behind has to see it (RFC 4918, section 10.3). */
#ifndef PROXY_DESTINATION_H
#define PROXY_DESTINATION_H

#include "route.h"

/* *value lives as long as the request; absent: the field stays as the client has sent it. 0, or a status: 400 for a malformed one, 502 for one on another server
 * or outside of the path that the route is about, 503 without memory. */
unsigned proxy_destination_make(struct mk_request *request, const struct proxy_route *route, mk_str *value);

#endif
