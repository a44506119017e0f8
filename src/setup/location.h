/* SPDX-License-Identifier: Apache-2.0 */
/* The limits and access logs of requests: of the server, of hosts, and of the paths that a [LOCATION] names.
 */
#ifndef MK_SETUP_LOCATION_H
#define MK_SETUP_LOCATION_H

#include "settings/config_generation_type.h"

/* Limits out of settings, with this access log (NULL: none). */
void mk_location_set_limits(struct mk_config_generation *g, const struct mk_request_settings *settings,
                            struct mk_logfile *log, struct mk_request_limits *out);

/* Sets the limits and the locations of site->host. Those of the server must be set. */
void mk_location_build_for_host(struct mk_config_generation *g, struct mk_vhost_config *site,
                                struct mk_conf_report *report);

/* Warns of access logs that plugins replace. Call it once they know their hosts. */
void mk_location_check_access_logs(const struct mk_config_generation *g, struct mk_conf_report *report);

#endif
