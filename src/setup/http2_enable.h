/* SPDX-License-Identifier: Apache-2.0 */
/* Enables HTTP/2 if any client of the configuration can use it. */
#ifndef MK_SETUP_HTTP2_ENABLE_H
#define MK_SETUP_HTTP2_ENABLE_H

#include "setup/config_generation_type.h"

/* Sets g->http2 and the HTTP/2 data of its hosts; call after addresses and hosts are known. Errors go to the
 * report: an HTTP/2-only `Listen` in a build without HTTP/2. With any other configuration, such builds use
 * HTTP/1. */
void mk_http2_enable(struct mk_config_generation *g, struct mk_conf_report *report);

#endif
