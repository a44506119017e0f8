/* SPDX-License-Identifier: Apache-2.0 */
/* From what the sections of a host say to a host that can be served. */
#ifndef MK_SERVER_SITE_H
#define MK_SERVER_SITE_H

#include "server/generation.h"

/* Builds site->host out of everything else in *site. Problems go to the report; the host is usable without
 * them. */
void mk_site_build(struct mk_generation *g, struct mk_site *site, struct mk_conf_report *report);
/* Closes what it opened. */
void mk_site_close(struct mk_site *site);

#endif
