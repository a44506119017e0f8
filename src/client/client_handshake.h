/* SPDX-License-Identifier: Apache-2.0 */
/* The proof that a server has understood a WebSocket handshake (RFC 6455, section 4.1). */
#ifndef MK_CLIENT_HANDSHAKE_H
#define MK_CLIENT_HANDSHAKE_H

#include "client/client_type.h"

/* Writes the Sec-WebSocket-Accept that the request deserves: MK_UPGRADE_ACCEPT_LEN; 0 if it is no handshake with
 * a key. */
size_t mk_client_handshake_accept(const struct mk_client_request *ask, char *room);
/* Does the response have it, once? */
bool mk_client_handshake_fits(const struct mk_client *c, const struct mk_fields *fields);

#endif
