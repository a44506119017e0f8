/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a received head, or a malformed one, into a request in the flow. */
#ifndef MK_PROTO_H1_REQUEST_H
#define MK_PROTO_H1_REQUEST_H

#include "proto/h1_types.h"

/* Creates an empty request, which the connection then owns. NULL: out of memory. */
struct mk_h1 *mk_h1_request_new(struct mk_conn *c) MK_MUST_USE;

/* Creates a request from that head and consumes it from the beginning of the input. The connection is in FLOW
 * then, possibly with a refusal. False: out of memory, the connection is closed. */
bool mk_h1_request_start(struct mk_conn *c, struct mk_request_head *head) MK_MUST_USE;

/* The client violated the protocol: sends one response and serves no more requests, since the start of the
 * next one is unknown. Returns the same as mk_h1_request_start. */
bool mk_h1_request_reject(struct mk_conn *c, unsigned status) MK_COLD MK_MUST_USE;

#endif
