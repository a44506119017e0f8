/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of the request that the server behind gets. */
#ifndef PROXY_FIELDS_H
#define PROXY_FIELDS_H

#include "call_type.h"

/* Adds them to what is asked. They live as long as the request. 0, or a status: 400 when Connection names too
 * many, 502 for a Destination elsewhere, 503 without memory. */
unsigned proxy_fields_make(struct proxy_call *c, struct mk_upstream_request_options *ask);
/* May a trailer of the client that is passed on have that name? Servers may take it for a field. */
bool proxy_fields_may_have(const struct proxy_call *c, mk_str name);

#endif
