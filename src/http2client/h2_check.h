/* SPDX-License-Identifier: Apache-2.0 */
/* A health check over HTTP/2: one request on a connection of its own. */
#ifndef MK_HTTP2CLIENT_H2_CHECK_H
#define MK_HTTP2CLIENT_H2_CHECK_H

#include "upstream/http2.h"

/* For the documentation, see struct mk_upstream_http2_module. */
void mk_h2_check_write(struct mk_buf *out, const struct mk_upstream_server *server, mk_str authority);
int mk_h2_check_read(struct mk_upstream_http2_check *check, mk_str bytes);
void mk_h2_check_free(struct mk_upstream_http2_check *check);

#endif
