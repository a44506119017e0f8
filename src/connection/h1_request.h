/* SPDX-License-Identifier: Apache-2.0 */
/* Creates a request from a received head, valid or malformed, and dispatches it. */
#ifndef MK_CONNECTION_H1_REQUEST_H
#define MK_CONNECTION_H1_REQUEST_H

#include "connection/h1_types.h"

/* Creates an empty request owned by the connection. NULL: out of memory. */
struct mk_h1 *mk_h1_request_new(struct mk_conn *c) MK_MUST_USE;

/* Creates a request from the head and consumes the head from the input. The connection is then in
 * MK_CONN_DISPATCH, possibly with an error response. False: out of memory, the connection is closed. */
bool mk_h1_request_start(struct mk_conn *c, struct mk_request_head *head) MK_MUST_USE;

/* Rejects a request that violates the protocol: sends one response and closes the connection, because the
 * start of the next request is unknown. Returns the same values as mk_h1_request_start(). */
bool mk_h1_request_reject(struct mk_conn *c, unsigned status) MK_COLD MK_MUST_USE;

#endif
