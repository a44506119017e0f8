/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of the request that the server behind gets. */
#ifndef PROXY_FIELDS_H
#define PROXY_FIELDS_H

#include <monkey/client.h>

#include "route.h"

/* Adds them to what is asked. They live as long as the request. 0 or -ENOMEM. */
int proxy_fields_make(struct mk_request *request, const struct proxy_route *route,
                      struct mk_client_request *ask);

#endif
