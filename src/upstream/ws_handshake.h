/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies a server's WebSocket handshake (RFC 6455, section 4.1). */
#ifndef MK_UPSTREAM_WS_HANDSHAKE_H
#define MK_UPSTREAM_WS_HANDSHAKE_H

#include "upstream/request_type.h"

/* Writes the Sec-WebSocket-Accept expected for the request. Returns MK_UPGRADE_ACCEPT_LEN, or 0 if the
 * request is no handshake with a key. */
size_t mk_upstream_ws_handshake_accept_key(const struct mk_upstream_request_options *options, char *buf);
/* Does the response contain it exactly once? */
bool mk_upstream_ws_handshake_verify(const struct mk_upstream_request *c, const struct mk_headers *fields);

#endif
