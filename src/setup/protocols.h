/* SPDX-License-Identifier: Apache-2.0 */
/* Enables HTTP/2 when a client of the configuration can speak it. */
#ifndef MK_SETUP_PROTOCOLS_H
#define MK_SETUP_PROTOCOLS_H

#include "settings/generation_type.h"

/* Sets g->http2 and what its hosts need for it, once addresses and hosts are known. Errors go to the report:
 * a `Listen` of HTTP/2 alone in a build without HTTP/2. Elsewhere clients use HTTP/1. */
void mk_protocols_choose(struct mk_generation *g, struct mk_conf_report *report);

#endif
