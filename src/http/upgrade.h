/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol upgrades: the protocol that a client requests (RFC 9110, section 7.8), and the WebSocket handshake
 * (RFC 6455, section 4). */
#ifndef MK_HTTP_UPGRADE_H
#define MK_HTTP_UPGRADE_H

#include "base/buf.h"
#include "http/header.h"

#define MK_UPGRADE_WEBSOCKET MK_STR("websocket")

enum { MK_UPGRADE_KEY_LEN = 24, MK_UPGRADE_ACCEPT_LEN = 28 };

/* Returns the first protocol in Upgrade; MK_UPGRADE_WEBSOCKET for WebSocket in any letter case. Absent if
 * there is none, if the first element is malformed, or if Connection does not list Upgrade. */
mk_str mk_upgrade_protocol(const struct mk_headers *fields);

/* Validates a WebSocket handshake. Returns 0, or the status with which to reject it: 426 for a version other
 * than 13, 400 for any other error. `with_key`: false over HTTP/2, which has no Sec-WebSocket-Key (RFC 8441,
 * section 5). */
int mk_upgrade_check_websocket(const struct mk_headers *fields, bool with_key) MK_MUST_USE;

/* Appends the value of Sec-WebSocket-Accept for that Sec-WebSocket-Key. */
void mk_upgrade_websocket_accept_key(mk_str key, struct mk_buf *out);

#endif
