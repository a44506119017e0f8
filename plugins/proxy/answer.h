/* SPDX-License-Identifier: Apache-2.0 */
/* The head of the response: what the server behind said, as the client gets it. */
#ifndef PROXY_ANSWER_H
#define PROXY_ANSWER_H

#include "call_type.h"

/* Status and fields. 0, or a negated errno value of mk_response_add(). */
int proxy_answer_copy(struct proxy_call *c);
/* Passes an interim response on, such as early hints. */
void proxy_answer_pass_interim(struct proxy_call *c);

#endif
