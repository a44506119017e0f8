/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of the request that the server behind gets. */
#ifndef PROXY_FIELDS_H
#define PROXY_FIELDS_H

#include <monkey/client.h>

#include "route.h"

/* Adds them to what is asked. They live as long as the request. 0 or -ENOMEM. */
int proxy_fields_make(struct mk_request *request, const struct proxy_route *route,
                      struct mk_client_request *ask);
/* May a field or trailer of the client that is passed on have that name? Servers may take the latter for the
 * former. */
bool proxy_fields_may_have(const struct proxy_route *route, mk_str name);

#endif
