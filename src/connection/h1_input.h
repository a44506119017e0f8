/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the body of an HTTP/1 request. Body data stays in the socket until a handler or body source reads it,
 * or until it is drained after the response. */
#ifndef MK_CONNECTION_H1_INPUT_H
#define MK_CONNECTION_H1_INPUT_H

#include "connection/h1_types.h"

/* Implements mk_request_read(). Call it only while the connection is being served, between
 * mk_conn_begin_serving() and mk_conn_end_serving(). */
ssize_t mk_h1_input_read_body(struct mk_h1 *h, char *buf, size_t cap);
/* Sends the 100 Continue that the client waits for (MK_INPUT_AWAITS_CONTINUE), unless the client has already
 * started to send the body, or the response has begun. */
mk_err mk_h1_input_send_100_continue(struct mk_h1 *h) MK_MUST_USE;

#endif
