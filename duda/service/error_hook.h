/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the error handlers of a service when the server is about to send an error page. */
#ifndef DUDA_SERVICE_ERROR_HOOK_H
#define DUDA_SERVICE_ERROR_HOOK_H

#include "service/service_entry.h"

/* The mount points of a service on a virtual host. */
struct duda_error_host;

/* Returns the host data of duda_service_error(); NULL if out of memory. `is_mounted_below`: the service has
 * routes in [ROUTES] of this host; otherwise it is mounted on the whole host. */
struct duda_error_host *duda_error_host_new(struct mk_config *config, const struct mk_vhost *host,
                                            const struct service_entry *service_entry, bool is_mounted_below);

#endif
