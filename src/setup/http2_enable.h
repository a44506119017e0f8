/* SPDX-License-Identifier: Apache-2.0 */
/* Enables HTTP/2 when a client of the configuration can speak it. */
#ifndef MK_SETUP_HTTP2_ENABLE_H
#define MK_SETUP_HTTP2_ENABLE_H

#include "settings/config_generation_type.h"

/* Sets g->http2 and what its hosts need for it, once addresses and hosts are known. Errors go to the report:
 * a `Listen` of HTTP/2 alone in a build without HTTP/2. Elsewhere clients use HTTP/1. */
void mk_http2_enable(struct mk_config_generation *g, struct mk_conf_report *report);

#endif
