/* SPDX-License-Identifier: Apache-2.0 */
/* The assets of a service: files for browsers, whose URLs contain a fingerprint of their content. */
#ifndef DUDA_SERVICE_ASSETS_H
#define DUDA_SERVICE_ASSETS_H

#include "service/duda_ctx.h"
#include "service/route_table.h"

/* Reads the folder `assets` if the service has DUDA_ASSETS(); otherwise, *out is NULL. Assets live as long as
 * the configuration. On failure, reports the error and returns false. */
bool duda_assets_load(struct mk_config *config, const struct duda_service *service,
                      const struct duda_route_table *table, const struct duda_assets **out);

/* Appends the URL of the asset: see duda_url_append_base(). Returns 0, or -ENOENT if there is no such asset, or
 * no base. */
int duda_assets_append_url(struct duda_ctx *d, bool is_absolute, mk_str name, struct mk_buf *out);

#endif
