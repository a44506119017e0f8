/* SPDX-License-Identifier: Apache-2.0 */
/* The server to which a request goes: the Server of the section, or the host of a URL. */
#ifndef DUDA_HTTP_TARGET_H
#define DUDA_HTTP_TARGET_H

#include "stream.h"
#include "url.h"

struct http_target {
    struct mk_upstream *upstream;
    mk_str host;         /* the value of the Host header */
    mk_str target;       /* path and query */
    mk_str url;          /* the absolute URL */
    mk_str dynamic_host; /* for a dynamic upstream, in the memory of the stream; absent: none */
    uint16_t dynamic_port;
};

/* Finds the server for request->url, or for request->target. All strings except dynamic_host live as long as
 * the handler. On an error, stream->error_text may describe it. */
int http_target_find(struct duda_http_stream *stream, const struct duda_http_request *request,
                     struct http_target *out);

#endif
