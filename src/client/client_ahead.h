/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the content of a response ahead of a reader that is slower than the server, into a spool: so a slow
 * client does not hold the connection, nor the process that answers over it. A reader that keeps up gets
 * everything as it comes. */
#ifndef MK_CLIENT_CLIENT_AHEAD_H
#define MK_CLIENT_CLIENT_AHEAD_H

#include "client/client_type.h"

/* False: memory is out. */
bool mk_client_ahead_start(struct mk_client *c, struct mk_request *request);
void mk_client_ahead_fini(struct mk_client *c);
/* It is time to look whether the reader is slow: mk_client_clock_is_look(). */
void mk_client_ahead_look(struct mk_client *c);
/* As mk_client_read(), for an exchange that was started. */
ssize_t mk_client_ahead_read(struct mk_client *c, char *room, size_t cap);
/* There may be more to read. False: that is no news for the reader, which has something to read already. */
bool mk_client_ahead_go(struct mk_client *c);

#endif
