/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC over HTTP/2: its requests are streamed, and get the errors of this server as a gRPC status. */
#ifndef MK_UPSTREAM_GRPC_H
#define MK_UPSTREAM_GRPC_H

#include <monkey/plugin.h>

/* Is it a POST over HTTP/2 with the media type application/grpc, or application/grpc+FORMAT? Other requests with this
 * media type are no calls: their bodies are buffered, and MinRate applies. */
bool mk_grpc_is_request(const struct mk_request *request);
/* The gRPC status of an HTTP status: UNAVAILABLE for 502 and 503, DEADLINE_EXCEEDED for 504. */
unsigned mk_grpc_status(unsigned http_status);
/* Responds without a body: the gRPC status is in the headers ("Trailers-Only"), and the HTTP status is 200. */
enum mk_verdict mk_grpc_respond_with_error(struct mk_response *response, unsigned http_status);

#endif
