/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a virtual host from its sections. */
#ifndef MK_SETUP_VHOST_CONFIG_H
#define MK_SETUP_VHOST_CONFIG_H

#include "setup/config_generation_type.h"

/* Initializes site->host: it has no root and no routes. */
void mk_vhost_config_init(struct mk_config_generation *g, struct mk_vhost_config *site);
/* Builds the initialized site->host from the sections and settings in *site. Errors go to the report; invalid
 * parts are omitted. */
void mk_vhost_config_build(struct mk_config_generation *g, struct mk_vhost_config *site,
                           struct mk_conf_report *report);
/* Closes the folders opened by mk_vhost_config_build(). */
void mk_vhost_config_close(struct mk_config_generation *g, struct mk_vhost_config *site);

#endif
