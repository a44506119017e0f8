/* SPDX-License-Identifier: Apache-2.0 */
/* A backend that services send requests to. */
#ifndef DUDA_HTTP_CLIENT_H
#define DUDA_HTTP_CLIENT_H

#include <duda/http.h>
#include <monkey/upstream.h>

#include "allow.h"

struct duda_http_client {
    mk_str name, server;
    uint32_t meter;
    mk_str host;
    struct mk_upstream *upstream; /* NULL: the section has no Server */
    uint32_t timeout_ms;
    unsigned tries;
    uint64_t content_max;
    bool sends_request_id, sends_trace;
    /* For URLs whose host is not the Server. */
    struct mk_conf_words allow_hosts, allow_private;
    mk_str tls_authority;
    struct http_allow *allowed;
    size_t n_allowed;
    struct mk_network_set *private_networks;      /* NULL: none */
    struct mk_upstream *http_hosts, *https_hosts; /* NULL: AllowHosts has no such URL */
    bool is_faked; /* in `monkey test`: a fake server receives all requests of the section */
};

#endif
