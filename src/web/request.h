/* SPDX-License-Identifier: Apache-2.0 */
/* A request from inside: what include/monkey/request.h keeps closed. */
#ifndef MK_WEB_REQUEST_H
#define MK_WEB_REQUEST_H

#include <monkey/request.h>

#include "base/arena.h"
#include "http/field.h"
#include "http/target.h"
#include "net/tls.h"
#include "os/addr.h"

struct mk_attached;
struct mk_route;
struct mk_trailers;
struct mk_web;

/* What the protocol does for a request; the only way up from here. `ctx` is the protocol's. */
struct mk_request_ops {
    ssize_t (*read)(void *ctx, char *room, size_t cap); /* as mk_request_read */
    void (*resume)(void *ctx);                          /* as mk_request_resume */
    mk_err (*local)(void *ctx, struct mk_peer *out);    /* as mk_request_local; may be NULL */
    /* What is known of the connection, if the request is encrypted; NULL: nothing. */
    void (*tls)(void *ctx, struct mk_tls_facts *out);
};

#define MK_REQUEST_LENGTH_UNKNOWN UINT64_MAX

struct mk_request {
    struct mk_arena *arena;
    struct mk_web *web;
    enum mk_method method;
    unsigned version; /* 10, 11, 20 */
    mk_str method_text, target_text;
    struct mk_target target;
    mk_str host, path;
    unsigned path_flags;          /* MK_PATH_... */
    const struct mk_route *route; /* whose handler was called last; NULL: none was */
    bool encrypted;               /* on its way to us */
    bool follows_client;          /* as mk_request_follow_client */
    bool rerouted;                /* its handler has found a better path: the routes are to be tried anew */
    bool rewritten;               /* it is one for another path now: hooks and routes are to be tried anew */
    uint64_t length;              /* of the content; MK_REQUEST_LENGTH_UNKNOWN */
    struct mk_fields fields;
    struct mk_trailers *trailers; /* NULL: none, or its content has not ended */
    mk_str tunnel;                /* the protocol that the client wants to speak, set by ours; absent: none */
    const struct mk_peer *peer;   /* the connection's, or whom somebody found it to speak for */
    struct mk_attached *attached;
    const struct mk_host *site; /* chosen by the flow */
    int64_t now;                /* seconds since 1970, when it came in */
    uint64_t now_ms;
    const struct mk_request_ops *ops; /* NULL: it has no content, and nobody to resume it */
    void *ops_ctx;
    void *data;
};

#endif
