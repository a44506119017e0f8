/* SPDX-License-Identifier: Apache-2.0 */
/* A request from inside: what include/monkey/request.h keeps closed. */
#ifndef MK_WEB_REQUEST_TYPE_H
#define MK_WEB_REQUEST_TYPE_H

#include <monkey/http.h>
#include <monkey/request.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "http/header.h"
#include "http/target.h"
#include "net/tls.h"
#include "os/sockaddr.h"

/* The target of a request: first as the client sent it, then as each rewrite or route changed it. Each step
 * is a value of its own that never changes. */
enum mk_request_target_by {
    MK_TARGET_BY_CLIENT,
    MK_TARGET_BY_HOOK,    /* on_request rewrote it */
    MK_TARGET_BY_HANDLER, /* a handler did: it is a GET or HEAD without content from here on */
    MK_TARGET_BY_ROUTE,   /* static found an index file or a fallback: only the routes are tried again */
};

/* Other paths that a program may take a path for: see http/path_variants.h. What follows scripts comes last. */
struct mk_request_path_variants {
    mk_str *list;
    size_t n, n_readings;
};

struct mk_request_target {
    enum mk_request_target_by by;
    enum mk_method method;
    unsigned path_flags; /* MK_PATH_... */
    bool is_plain;       /* mk_path_is_plain(): the target's path was not decoded */
    bool no_content;     /* the content that was received is not for this path */
    struct mk_target target;
    mk_str path;                               /* decoded; absent: the target was not valid */
    const struct mk_request_target *before;    /* NULL: as received */
    unsigned left_at;                          /* with BY_ROUTE: the route that led here from `before` */
    struct mk_request_path_variants *variants; /* of the path; NULL: they were not needed yet */
    const char *marks; /* how the path was written, as of mk_path_decode_marked(); likewise */
};

struct mk_request_attachment;
struct mk_header;
struct mk_vhosts;
struct mk_route;
struct mk_trailers;
struct mk_web_ctx;

/* What the protocol does for a request; the only way up from here. `ctx` is the protocol's. */
struct mk_request_ops {
    ssize_t (*read)(void *ctx, char *buf, size_t cap); /* as mk_request_read */
    void (*resume)(void *ctx);                         /* as mk_request_resume */
    mk_err (*local)(void *ctx, struct mk_addr *out);   /* as mk_request_local_addr; may be NULL */
    /* As mk_response_send_1xx: 0 or -EAGAIN; may be NULL. */
    mk_err (*interim)(void *ctx, unsigned status, const struct mk_header *fields, size_t n);
    /* What is known of the connection, if the request is encrypted; NULL: nothing. */
    void (*tls)(void *ctx, struct mk_tls_conn_info *out);
    /* Sets the limit of the content. -EMSGSIZE: the content is longer. May be NULL. */
    mk_err (*limit_body)(void *ctx, uint64_t max);
};

#define MK_REQUEST_LENGTH_UNKNOWN UINT64_MAX

struct mk_request {
    struct mk_arena *arena;
    struct mk_web_ctx *web;

    /* What was received: set once, before the flow begins. */
    const struct mk_vhosts *hosts;     /* that its address leads to */
    unsigned version;                  /* 10, 11, 20 */
    bool encrypted;                    /* on its way to us */
    bool is_told, forwarded_is_secure; /* a trusted proxy says which scheme its client uses */
    mk_str method_text, target_text;
    mk_str host;                 /* the authority of the target or else the Host field; without port */
    mk_str forwarded_vhost_name; /* by a server in front of this one; absent: none */
    struct mk_request_target received;
    struct mk_headers fields;
    uint64_t length; /* of the content; MK_REQUEST_LENGTH_UNKNOWN */
    mk_str tunnel;   /* the protocol that the client wants to speak; absent: none */
    mk_str upgrade;  /* that of a request with content, or with another method than GET */
    int64_t now;     /* seconds since 1970, when it came in */
    uint64_t now_ms;
    struct mk_trailers *trailers; /* NULL: none, or the content has not ended */

    /* What it asks for now: `received`, until a rewrite replaces it. */
    const struct mk_request_target *asked;

    /* What the flow and its hooks found out. */
    const struct mk_vhost *site;
    const struct mk_route *route; /* of the last called handler; NULL: none was */
    bool handler_found_nothing;   /* a handler has passed, with 404: nothing is at the path */
    bool is_ambiguous;            /* a hook would have judged a variant of the path otherwise */
    const struct mk_addr *peer;   /* the connection's, or the client that a hook found behind it */
    struct mk_request_attachment *attached;
    void *data;

    const struct mk_request_ops *ops; /* NULL: there is no content to read and no connection to resume */
    void *ops_ctx;
};

/* Does the client speak TLS, with us or with a trusted proxy? */
static inline bool mk_request_is_secure(const struct mk_request *request)
{
    return request->is_told ? request->forwarded_is_secure : request->encrypted;
}

/* Does its content belong to a path before this one? Before the target is read, there is no path. */
static inline bool mk_request_body_was_dropped(const struct mk_request *request)
{
    return request->asked && request->asked->no_content;
}

#endif
