/* SPDX-License-Identifier: Apache-2.0 */
/* The output of a script becomes a response: its head at once, its content while it is sent. */
#ifndef CGI_ANSWER_H
#define CGI_ANSWER_H

#include "call.h"

/* Begins the response once the output so far holds a complete head: true with the verdict of the handler;
 * false when more output is needed. */
bool cgi_answer_begin(struct cgi_call *c, struct mk_response *response, enum mk_verdict *verdict);

#endif
