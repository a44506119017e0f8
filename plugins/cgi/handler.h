/* SPDX-License-Identifier: Apache-2.0 */
/* Handling of a request: find the script, receive the body, wait for a process slot, start it, read its
 * head. */
#ifndef CGI_HANDLER_H
#define CGI_HANDLER_H

#include "exchange.h"

/* mk_handler.handle; `pool` belongs to the settings in this worker. */
enum mk_verdict cgi_handler_run(struct mk_request *request, struct mk_response *response,
                                const struct cgi_settings *settings, const struct cgi_route *route,
                                struct cgi_pool *pool);

#endif
