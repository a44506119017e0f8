/* SPDX-License-Identifier: Apache-2.0 */
/* Detects conflicts between services on the same virtual hosts when the configuration does not define their
 * order. */
#ifndef DUDA_SERVICE_ROUTE_CONFLICTS_H
#define DUDA_SERVICE_ROUTE_CONFLICTS_H

#include "service/route_table.h"

struct duda_route_conflicts;

/* Adds the routes of a service that handles the whole host to *all, which contains those of the other such
 * services. Returns false if out of memory, or if two services define the same route, which is reported. */
bool duda_route_conflicts_add(struct mk_config *config, struct duda_route_conflicts **all,
                              const struct mk_vhost *host, const struct duda_service *service,
                              const struct duda_route_table *table);

#endif
