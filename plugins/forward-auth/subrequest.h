/* SPDX-License-Identifier: Apache-2.0 */
/* The request to the service: a GET without a body that describes the client's request. */
#ifndef FORWARD_AUTH_SUBREQUEST_H
#define FORWARD_AUTH_SUBREQUEST_H

#include "locations.h"

/* Sets method, target and headers, in memory of the client's request. False: out of memory. */
bool forward_auth_subrequest_build(struct mk_request *request, const struct forward_auth_location *place,
                                   struct mk_upstream_request_options *options);

/* The URL that the client requested. Absent: out of memory. */
mk_str forward_auth_original_url(struct mk_request *request);

/* Writes a MAC of everything that a cached answer depends on. False: out of memory, or more than 64 KB. */
bool forward_auth_subrequest_key(struct mk_request *request, const struct forward_auth_location *place,
                                 mk_str secret, char out[32]);

#endif
