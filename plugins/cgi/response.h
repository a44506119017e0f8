/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the script's output into a response: its head at once, its body as it is sent. */
#ifndef CGI_RESPONSE_H
#define CGI_RESPONSE_H

#include "exchange.h"

/* Starts the response once the output contains a complete head: true, with the handler's verdict; false: more
 * output needed. */
bool cgi_response_begin(struct cgi_exchange *c, struct mk_response *response, enum mk_verdict *verdict);

#endif
