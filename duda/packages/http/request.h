/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the request of an exchange. */
#ifndef DUDA_HTTP_REQUEST_H
#define DUDA_HTTP_REQUEST_H

#include "stream.h"

/* Writes request->json, unless it is null, to request->body, in the memory of the handler. */
int http_stream_write_json(struct duda_http_stream *stream, struct duda_http_request *request);
/* Starts the exchange, and sets response->url. The body comes from `source`, or from `request` if `source` is
 * NULL. */
int http_stream_start(struct duda_http_stream *stream, const struct duda_http_request *request,
                      const struct mk_upstream_request_body *source, int64_t length,
                      struct duda_http_response *response);

#endif
