/* SPDX-License-Identifier: Apache-2.0 */
/* Request limits and access logs of the server, of hosts, and of paths in [LOCATION]. */
#ifndef MK_SETUP_LOCATION_H
#define MK_SETUP_LOCATION_H

#include "setup/config_generation_type.h"

/* Converts settings to limits, with this access log (NULL: none). */
void mk_location_set_limits(struct mk_config_generation *g, const struct mk_request_settings *settings,
                            struct mk_logfile *log, struct mk_request_limits *out);

/* Sets the limits and locations of site->host. Set the limits of the server first. */
void mk_location_build_for_host(struct mk_config_generation *g, struct mk_vhost_config *site,
                                struct mk_conf_report *report);

/* Warns about access logs that a plugin replaces. Call it after plugins have configured their hosts. */
void mk_location_check_access_logs(const struct mk_config_generation *g, struct mk_conf_report *report);

#endif
