/* SPDX-License-Identifier: Apache-2.0 */
/* Service discovery: sources that list the servers of an upstream. A source is a name with addresses, a name with SRV
 * records, or a file. The first worker looks the sources up, and again later, and puts their servers into the slots
 * that MaxServers reserves (server_control.h), from where all workers read them. A build without MK_DISCOVERY has
 * discovery_none.c in place of the files discovery*.c and dns_*.c. */
#ifndef MK_UPSTREAM_DISCOVERY_H
#define MK_UPSTREAM_DISCOVERY_H

#include "upstream/discovery_type.h"

/* ---- Configuration ---- */

/* Checks the keys of a section. */
void mk_discovery_check_section(struct mk_config *config, const struct mk_upstream_settings *s);
/* Adds the sources of the upstream. False: the error was reported. */
bool mk_discovery_add_sources(struct mk_config *config, const void *section, struct mk_upstream *u);
/* Master only, after the configuration was accepted. */
void mk_discovery_publish(struct mk_upstreams *all, struct mk_config *config);

/* ---- Workers ---- */

/* Starts discovery in the first worker; elsewhere, *out is NULL. False: out of memory. */
bool mk_discovery_start(struct mk_pool *p, struct mk_discovery **out);
/* Looks nothing up any more: a newer configuration does. */
void mk_discovery_drain(struct mk_discovery *d);
void mk_discovery_stop(struct mk_discovery *d);

#endif
