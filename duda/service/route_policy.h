/* SPDX-License-Identifier: Apache-2.0 */
/* Converts `.rate` and `.auth` of routes and groups, and DUDA_CORS(), to middleware. */
#ifndef DUDA_SERVICE_ROUTE_POLICY_H
#define DUDA_SERVICE_ROUTE_POLICY_H

#include <duda/cors.h>

#include "service/duda_ctx.h"
#include "service/rate_table.h"

/* Returns NULL, or why the policy is invalid. */
const char *duda_route_policy_cors_error(const struct duda_cors *cors);
/* Returns the DUDA_BEFORE() entry that applies the policy; NULL if out of memory. */
const struct duda_route *duda_route_policy_cors(struct mk_config *config, const struct duda_route *entry,
                                                const struct duda_cors *cors);
/* Returns the DUDA_BEFORE() entry that applies `rate`, the `.rate` of the entry; NULL if out of memory.
 * `name` is unique in the configuration. */
const struct duda_route *duda_route_policy_rate(struct mk_config *config, const struct duda_route *entry,
                                                const struct duda_rate *rate, mk_str name);
/* Returns the DUDA_BEFORE() entry that calls a function of the `.auth` of the entry. */
const struct duda_route *duda_route_policy_auth(struct mk_config *config, const struct duda_route *entry,
                                                duda_fn *fn, const void *data);

/* Adds the CORS headers to a response. Needs no handler. */
void duda_route_policy_add_cors_headers(struct mk_request *request, struct mk_response *response,
                                        const struct duda_cors *cors);
/* Returns the method that a preflight request asks about; absent if the request is not a preflight
 * request. */
mk_str duda_route_policy_preflight_method(const struct mk_request *request);
/* Writes the response to a preflight request. */
void duda_route_policy_respond_preflight(struct mk_request *request, struct mk_response *response,
                                         const struct duda_cors *cors, mk_str method);

#endif
