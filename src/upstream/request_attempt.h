/* SPDX-License-Identifier: Apache-2.0 */
/* One attempt to send a request to a server, and the retry on another server if allowed. */
#ifndef MK_UPSTREAM_REQUEST_ATTEMPT_H
#define MK_UPSTREAM_REQUEST_ATTEMPT_H

#include "upstream/request_type.h"

/* Acquires a connection. False: out of memory. */
bool mk_upstream_request_attempt_start(struct mk_upstream_request *c,
                                       void (*on_conn)(void *c, unsigned which)) MK_MUST_USE;
/* Call it when the connection is ready. False: the server has closed this pooled connection, and resending
 * the request is not safe. */
bool mk_upstream_request_attempt_check(struct mk_upstream_request *c) MK_MUST_USE;
/* The connection failed with `error` before a response. True: the request waits for another connection.
 * False: the request has failed. */
bool mk_upstream_request_attempt_retry(struct mk_upstream_request *c, int error, const char *problem,
                                       void (*on_conn)(void *c, unsigned which)) MK_MUST_USE;
/* Call it when no connection could be acquired, because of `error`. */
void mk_upstream_request_attempt_fail(struct mk_upstream_request *c, int error);

/* The server is down: fails over to another server if the request may be resent. False: no change. */
bool mk_upstream_request_attempt_failover(struct mk_upstream_request *c,
                                          void (*on_conn)(void *c, unsigned which));

#endif
