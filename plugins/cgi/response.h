/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the script's output into a response: the head at once, the body while it is sent. */
#ifndef CGI_RESPONSE_H
#define CGI_RESPONSE_H

#include "exchange.h"

/* Starts the response once the output contains a complete head. Returns true with the handler's verdict;
 * false if more output is needed. */
bool cgi_response_begin(struct cgi_exchange *c, struct mk_response *response, enum mk_verdict *verdict);

#endif
