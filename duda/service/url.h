/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DUDA_SERVICE_URL_H
#define DUDA_SERVICE_URL_H

#include "service/duda_ctx.h"

/* Returns the path at which the service is mounted: the part of the request's path before d->path. */
mk_str duda_url_mount_prefix(struct duda_ctx *d);
/* Returns whether `pair`, the part "NAME=VALUE" of a query, has this name. */
bool duda_query_pair_has_name(struct duda_ctx *d, mk_str pair, mk_str name);

#endif
