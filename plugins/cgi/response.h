/* SPDX-License-Identifier: Apache-2.0 */
/* The output of a script becomes a response: its head at once, its content while it is sent. */
#ifndef CGI_RESPONSE_H
#define CGI_RESPONSE_H

#include "exchange.h"

/* Begins the response once the output so far holds a complete head: true with the verdict of the handler;
 * false when more output is needed. */
bool cgi_response_begin(struct cgi_exchange *c, struct mk_response *response, enum mk_verdict *verdict);

#endif
