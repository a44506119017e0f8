/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of one request on its way through the proxy. */
#ifndef PROXY_CALL_TYPE_H
#define PROXY_CALL_TYPE_H

#include <monkey/spool.h>
#include <monkey/upstream.h>

#include "route.h"

enum proxy_step {
    PROXY_GATHER,  /* the content comes in whole, so that a slow client holds no connection */
    PROXY_WAIT,    /* for the head of the response */
    PROXY_CONTENT, /* of the response */
    PROXY_TUNNEL,
    PROXY_OVER,
};

/* The content of the request. */
struct proxy_upload {
    char *text; /* its beginning, which is gathered */
    size_t cap, got, sent;
    struct mk_spool *spool; /* what follows; NULL: nothing, or it is streamed */
    uint64_t spool_sent;
    bool is_whole;   /* there is no more */
    bool is_held;    /* the server asks for the content */
    bool is_spooled; /* what follows is received before a connection is taken */
};

enum { PROXY_NAMED_MAX = 32 };

/* Fields that Connection names: they are of one connection alone (RFC 9110, section 7.6.1). */
struct proxy_named {
    size_t n;
    mk_str list[PROXY_NAMED_MAX];
};

/* Max-Forwards of OPTIONS and TRACE (RFC 9110, section 7.6.2). */
struct proxy_hops {
    bool is_limited;
    uint32_t left; /* for the backend */
};

struct proxy_call {
    struct mk_request *request;
    struct mk_response *response;
    const struct proxy_route *route;
    struct mk_upstream_request *client;
    mk_str upgrade; /* the protocol of the tunnel that is asked for; absent: none */
    enum proxy_step step;
    bool is_called; /* the server has called us, so the request can be read */
    struct proxy_upload upload;
    struct proxy_hops hops;
    struct proxy_named named;
};

#endif
