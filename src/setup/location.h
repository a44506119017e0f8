/* SPDX-License-Identifier: Apache-2.0 */
/* Request limits and access logs of the server, of hosts, and of paths in [LOCATION]. */
#ifndef MK_SETUP_LOCATION_H
#define MK_SETUP_LOCATION_H

#include "setup/config_generation_type.h"

/* Converts settings to limits with the access log `log` (NULL: none). */
void mk_location_set_limits(struct mk_config_generation *g, const struct mk_request_settings *settings,
                            struct mk_logfile *log, struct mk_request_limits *out);

/* Sets the limits and locations of site->host. The limits of the server (g->limits) must already be set. */
void mk_location_build_for_host(struct mk_config_generation *g, struct mk_vhost_config *site,
                                struct mk_conf_report *report);

/* Warns about configured access logs that a plugin replaces. Call it after plugins have configured their
 * hosts. */
void mk_location_check_access_logs(const struct mk_config_generation *g, struct mk_conf_report *report);

#endif
