/* SPDX-License-Identifier: Apache-2.0 */
/* The content of an HTTP/1 request: read as it is asked for, never before. */
#ifndef MK_PROTO_H1_INPUT_H
#define MK_PROTO_H1_INPUT_H

#include "proto/h1.h"

/* As mk_request_read. Only while the connection is being served (between mk_conn_enter and leave). */
ssize_t mk_h1_input_read(struct mk_h1 *h, char *room, size_t cap);
/* Sends the 100 that is owed (h->expects_continue), unless nobody waits for it any more. */
mk_err mk_h1_input_continue(struct mk_h1 *h) MK_MUST_USE;

#endif
