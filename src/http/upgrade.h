/* SPDX-License-Identifier: Apache-2.0 */
/* Other protocols in the place of HTTP: which one a client asks for (RFC 9110, section 7.8), and the
 * handshake of the usual one (RFC 6455, section 4). */
#ifndef MK_HTTP_UPGRADE_H
#define MK_HTTP_UPGRADE_H

#include "base/buf.h"
#include "http/header.h"

#define MK_UPGRADE_WEBSOCKET MK_STR("websocket")

enum { MK_UPGRADE_KEY_LEN = 24, MK_UPGRADE_ACCEPT_LEN = 28 };

/* The first protocol of the Upgrade field, where Connection says that it is meant for us; absent if there is
 * none, or the list is not well-formed up to there. Spelt as MK_UPGRADE_WEBSOCKET if it is that. */
mk_str mk_upgrade_protocol(const struct mk_headers *fields);

/* A WebSocket handshake: 0, or the status to refuse it with: 426 for another version than 13, 400 for
 * anything else that is not valid. `with_key`: over HTTP/2 there is no Sec-WebSocket-Key (RFC 8441, section
 * 5). */
int mk_upgrade_check_websocket(const struct mk_headers *fields, bool with_key) MK_MUST_USE;

/* The value of Sec-WebSocket-Accept for that Sec-WebSocket-Key. */
void mk_upgrade_websocket_accept_key(mk_str key, struct mk_buf *out);

#endif
