/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a host that can be served from its sections. */
#ifndef MK_SETUP_SITE_H
#define MK_SETUP_SITE_H

#include "settings/generation_type.h"

/* Builds site->host from the rest of *site. Problems go to the report; the host leaves out the faulty
 * parts. */
void mk_site_build(struct mk_generation *g, struct mk_site *site, struct mk_conf_report *report);
/* Closes the files that mk_site_build() opened. */
void mk_site_close(struct mk_generation *g, struct mk_site *site);

#endif
