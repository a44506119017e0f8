/* SPDX-License-Identifier: Apache-2.0 */
/* Services that answer in the same hosts, in a configuration that does not say which of them comes first. */
#ifndef DUDA_SERVICE_ROUTE_CONFLICTS_H
#define DUDA_SERVICE_ROUTE_CONFLICTS_H

#include "service/route_table.h"

struct duda_route_conflicts;

/* Adds the routes of a service that answers in the whole host to those of the others there, `*all`. False: two
 * services have the same route, which was reported, or memory is out. */
bool duda_route_conflicts_add(struct mk_config *config, struct duda_route_conflicts **all,
                              const struct mk_vhost *host, const struct duda_service *service,
                              const struct duda_route_table *table);

#endif
