/* SPDX-License-Identifier: Apache-2.0 */
/* A request is asked of a server, and of another one if that may be. */
#ifndef MK_UPSTREAM_REQUEST_ATTEMPT_H
#define MK_UPSTREAM_REQUEST_ATTEMPT_H

#include "upstream/request_type.h"

/* Takes a connection. False: no memory. */
bool mk_upstream_request_attempt_start(struct mk_upstream_request *c,
                                       void (*on_conn)(void *c, unsigned which)) MK_MUST_USE;
/* The connection is there. False: it was kept, the server closed it, and the request is not to be risked. */
bool mk_upstream_request_attempt_check(struct mk_upstream_request *c) MK_MUST_USE;
/* No response came over the connection, because of `error`. True: the request is waiting again, for another
 * connection. False: it failed. */
bool mk_upstream_request_attempt_retry(struct mk_upstream_request *c, int error, const char *problem,
                                       void (*on_conn)(void *c, unsigned which)) MK_MUST_USE;
/* There is no connection, because of `error`. */
void mk_upstream_request_attempt_fail(struct mk_upstream_request *c, int error);

/* The server is down: tries another one, if the request may be sent again. False: it stays. */
bool mk_upstream_request_attempt_failover(struct mk_upstream_request *c,
                                          void (*on_conn)(void *c, unsigned which));

#endif
