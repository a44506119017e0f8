/* SPDX-License-Identifier: Apache-2.0 */
/* Listen addresses of a generation, and the hosts of each address. */
#ifndef MK_SETUP_LISTEN_ADDRESSES_H
#define MK_SETUP_LISTEN_ADDRESSES_H

#include "setup/config_generation_type.h"

/* Collects the addresses in g->listens: from the command line or, without any, from [SERVER] and every
 * [HOST]. Call it after all host settings are known. */
void mk_listen_addresses_collect(struct mk_config_generation *g, const struct mk_config_overrides *o,
                                 struct mk_conf_report *report);

/* Assigns hosts to each address: the hosts with a Listen for this address and, if [SERVER] has such a Listen,
 * the hosts without any Listen. Call it after all hosts are built. */
void mk_listen_addresses_assign_hosts(struct mk_config_generation *g, struct mk_conf_report *report);

/* Is the host served at this address? If `l` is NULL: has the host no Listen? */
bool mk_listen_addresses_serves(const struct mk_listen *l, const struct mk_vhost_config *s);

#endif
