/* SPDX-License-Identifier: Apache-2.0 */
/* Enables HTTP/2 in a generation if any of its clients may use it. */
#ifndef MK_SETUP_HTTP2_ENABLE_H
#define MK_SETUP_HTTP2_ENABLE_H

#include "setup/config_generation_type.h"

/* Sets g->http2 and the HTTP/2 data of all hosts. Call this after addresses and hosts are known. Builds
 * without HTTP/2 use HTTP/1, and report an HTTP/2-only `Listen` as an error. */
void mk_http2_enable(struct mk_config_generation *g, struct mk_conf_report *report);

#endif
