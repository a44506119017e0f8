/* SPDX-License-Identifier: Apache-2.0 */
/* Under `monkey run`, the error pages of the server and Duda explain the error: they show the log messages of
 * the request and the existing routes. */
#ifndef DUDA_DEV_ERROR_REASON_H
#define DUDA_DEV_ERROR_REASON_H

#include <monkey/plugin.h>

/* Implements on_response. */
void dev_error_reason_on_response(struct mk_request *request, struct mk_response *response);

/* Returns whether the client is a browser, which asks for HTML. Other programs accept any media type, but get
 * the page in plain text. */
bool dev_error_reason_accepts_html(struct mk_request *request);

#endif
