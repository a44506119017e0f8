/* SPDX-License-Identifier: Apache-2.0 */
/* Redirects (RFC 9110, section 15.4), with the rules of browsers where the RFC leaves a choice. */
#ifndef DUDA_HTTP_REDIRECT_H
#define DUDA_HTTP_REDIRECT_H

#include "stream.h"

/* Changes *request, the caller's copy, into the request for the Location of the response. Returns 1; 0: the
 * response is no redirect; or an error, which stream->error_text describes. */
int http_redirect_follow(struct duda_http_stream *stream, struct duda_http_request *request,
                         const struct duda_http_response *response);

#endif
