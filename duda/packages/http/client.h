/* SPDX-License-Identifier: Apache-2.0 */
/* A backend that services send requests to. */
#ifndef DUDA_HTTP_CLIENT_H
#define DUDA_HTTP_CLIENT_H

#include <duda/http.h>
#include <monkey/upstream.h>

struct duda_http_client {
    mk_str name, server;
    uint32_t meter;
    mk_str host;
    struct mk_upstream *upstream;
    uint32_t timeout_ms;
    unsigned tries;
    uint64_t content_max;
};

#endif
