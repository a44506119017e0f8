/* SPDX-License-Identifier: Apache-2.0 */
/* One request and the script that answers it. */
#ifndef CGI_CALL_H
#define CGI_CALL_H

#include "process.h"

/* As mk_handler.handle; `pool` is the one of the settings in this worker. */
enum mk_verdict cgi_call_handle(struct mk_request *request, struct mk_response *response,
                                const struct cgi_settings *settings, const struct cgi_route *route,
                                struct cgi_pool *pool);

#endif
