/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DUDA_SERVICE_URL_H
#define DUDA_SERVICE_URL_H

#include "service/duda_ctx.h"

/* Returns the path at which the service is mounted: the part of the request's path before d->path. */
mk_str duda_url_mount_prefix(struct duda_ctx *d);

#endif
