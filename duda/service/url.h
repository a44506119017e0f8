/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DUDA_SERVICE_URL_H
#define DUDA_SERVICE_URL_H

#include "service/duda_ctx.h"
#include "service/route_table.h"

/* Warns about the calls of duda_url_for() in the object of the service whose names can never be found. */
void duda_url_check_names(struct mk_config *config, const struct duda_service *service,
                          const struct duda_route_table *t);
/* Returns the path at which the service is mounted: the part of the request's path before d->path. */
mk_str duda_url_mount_prefix(struct duda_ctx *d);
/* Returns whether `pair`, the part "NAME=VALUE" of a query, has this name. */
bool duda_query_pair_has_name(struct duda_ctx *d, mk_str pair, mk_str name);

#endif
