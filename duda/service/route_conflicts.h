/* SPDX-License-Identifier: Apache-2.0 */
/* Detects equal routes of services on the same virtual hosts when the configuration does not define their
 * order. */
#ifndef DUDA_SERVICE_ROUTE_CONFLICTS_H
#define DUDA_SERVICE_ROUTE_CONFLICTS_H

#include "service/route_table.h"

/* Declares the routes of a service that handles the whole host. Returns false if out of memory, or if another
 * service has declared the same route, which is reported. */
bool duda_route_conflicts_declare(struct mk_config *config, const struct duda_service *service,
                                  const struct duda_route_table *table);

/* Writes the routes to the file of MK_ROUTES_FD_VARIABLE, if the environment has this variable. */
void duda_route_conflicts_report(const struct duda_service *service, const struct duda_route_table *table);

#endif
