/* SPDX-License-Identifier: Apache-2.0 */
/* From a head that was read, or one that was wrong, to a request in the corridor. */
#ifndef MK_PROTO_H1_REQUEST_H
#define MK_PROTO_H1_REQUEST_H

#include "proto/h1.h"

/* A request of which nothing is known yet, as the connection's own. NULL when memory is out. */
struct mk_h1 *mk_h1_request_new(struct mk_conn *c) MK_MUST_USE;

/* A request with that head, which is the beginning of the input and is used up. The connection is in FLOW
 * then, maybe with a refusal. False: it is closed, there was no memory even for that. */
bool mk_h1_request_start(struct mk_conn *c, struct mk_head *head) MK_MUST_USE;

/* The peer broke the rules: one answer, and no more requests, since where the next one begins is not known.
 * Answers as mk_h1_request_start. */
bool mk_h1_request_refuse(struct mk_conn *c, unsigned status) MK_COLD MK_MUST_USE;

#endif
