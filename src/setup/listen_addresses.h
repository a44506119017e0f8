/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses that a generation listens on, and the hosts of each address. */
#ifndef MK_SETUP_LISTEN_ADDRESSES_H
#define MK_SETUP_LISTEN_ADDRESSES_H

#include "settings/config_generation_type.h"

/* Collects the addresses in g->listens: those of the command line or, without any, those of [SERVER] and
 * every [HOST]. Call it once the settings of all sites are known. */
void mk_listen_addresses_collect(struct mk_config_generation *g, const struct mk_config_overrides *o,
                                 struct mk_conf_report *report);

/* Gives every address its hosts: the hosts with this Listen and, if [SERVER] has it, the hosts without any
 * Listen. Call it once the sites are built. */
void mk_listen_addresses_assign_hosts(struct mk_config_generation *g, struct mk_conf_report *report);

/* True if the site is served at this address. */
bool mk_listen_addresses_serves(const struct mk_listen *l, const struct mk_vhost_config *s);

#endif
