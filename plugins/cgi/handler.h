/* SPDX-License-Identifier: Apache-2.0 */
/* Handles a request: finds the script, receives the body, waits for a process slot, starts the script, and
 * reads its head. */
#ifndef CGI_HANDLER_H
#define CGI_HANDLER_H

#include "exchange.h"

/* Implements mk_handler.handle; `pool` is this worker's pool for the settings. */
enum mk_verdict cgi_handler_run(struct mk_request *request, struct mk_response *response,
                                const struct cgi_settings *settings, const struct cgi_route *route,
                                struct cgi_pool *pool);

#endif
