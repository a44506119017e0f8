/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a host that can be served from its sections. */
#ifndef MK_SETUP_VHOST_CONFIG_H
#define MK_SETUP_VHOST_CONFIG_H

#include "settings/config_generation_type.h"

/* Builds site->host from the rest of *site. Problems go to the report; the host leaves out the faulty
 * parts. */
void mk_vhost_config_build(struct mk_config_generation *g, struct mk_vhost_config *site,
                           struct mk_conf_report *report);
/* Closes the files that mk_vhost_config_build() opened. */
void mk_vhost_config_close(struct mk_config_generation *g, struct mk_vhost_config *site);

#endif
