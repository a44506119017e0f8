/* SPDX-License-Identifier: Apache-2.0 */
/* A request is asked of a server, and of another one if that may be. */
#ifndef MK_CLIENT_CLIENT_ATTEMPT_H
#define MK_CLIENT_CLIENT_ATTEMPT_H

#include "client/client_type.h"

/* Takes a connection. False: no memory. */
bool mk_client_attempt_begin(struct mk_client *c, void (*on_link)(void *c, unsigned which)) MK_MUST_USE;
/* The connection is there. False: it was kept, the server closed it, and the request is not to be risked. */
bool mk_client_attempt_is_alive(struct mk_client *c) MK_MUST_USE;
/* No response came over the connection, because of `error`. True: the exchange is waiting again, for another
 * connection. False: it failed. */
bool mk_client_attempt_again(struct mk_client *c, int error, const char *problem,
                             void (*on_link)(void *c, unsigned which)) MK_MUST_USE;
/* There is no connection, because of `error`. */
void mk_client_attempt_give_up(struct mk_client *c, int error);

/* The server is out: tries another one, if the request may be sent again. False: it stays. */
bool mk_client_attempt_move(struct mk_client *c, void (*on_link)(void *c, unsigned which));

#endif
