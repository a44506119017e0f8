/* SPDX-License-Identifier: Apache-2.0 */
/* The handler `proxy`: a route to HTTP servers, and one request on its way there and back. */
#ifndef MK_UPSTREAM_PROXY_H
#define MK_UPSTREAM_PROXY_H

#include "upstream/handler.h"

/* ---- The route ---- */

/* What a backend hears of the client. A local backend (monkey/upstream.h) gets signed facts in place of Forwarded. */
enum mk_proxy_forwarded {
    MK_PROXY_FORWARDED_REPLACE,
    MK_PROXY_FORWARDED_APPEND,
    MK_PROXY_FORWARDED_OFF,
    MK_PROXY_FORWARDED_LOCAL
};

/* Client-Cert (RFC 9440): ours, if the client has a certificate; no such field; or what the client says. */
enum mk_proxy_certificate { MK_PROXY_CERTIFICATE_OFF, MK_PROXY_CERTIFICATE_ON, MK_PROXY_CERTIFICATE_PASS };

/* What `Balance hash` is made of. */
enum mk_proxy_hash {
    MK_PROXY_HASH_NONE,
    MK_PROXY_HASH_ADDRESS,
    MK_PROXY_HASH_PATH,
    MK_PROXY_HASH_COOKIE,
    MK_PROXY_HASH_FIELD
};

/* A share of requests is counted in parts of this. */
enum { MK_PROXY_SHARE_ALL = 10000 };

struct mk_proxy_route {
    struct mk_upstream *upstream;
    mk_str authority; /* of the target, for `host=upstream` */
    uint16_t port;    /* that an authority without one means */
    mk_str path;      /* of the target; absent: the path is passed as it is */
    mk_str prefix;    /* of the pattern, which `path` replaces */
    mk_str host;      /* the Host to send; absent: the client's */
    enum mk_proxy_forwarded forwarded;
    enum mk_proxy_certificate certificate;
    enum mk_proxy_hash hash;
    mk_str hash_name; /* of the cookie or field */
    mk_str sticky;    /* the cookie that names a server; absent: none */
    bool rewrites_redirects, rewrites_cookies;
    bool raw_paths;             /* also those that the server may read as paths of other routes */
    bool passes_underscores;    /* fields with one in their names */
    bool streams;               /* small uploads, too */
    struct mk_upstream *mirror; /* gets copies of requests; NULL: none */
    unsigned share;             /* of the requests, in parts of MK_PROXY_SHARE_ALL; 0: not said */
    mk_str secret;              /* of the local backend; absent: it asks for no proof */
    bool limits_tunnel;
    uint32_t tunnel_ms; /* 0: no limit */
    struct mk_upstream_limits limits;
};

static inline bool mk_proxy_route_is_local(const struct mk_proxy_route *route)
{
    return route->forwarded == MK_PROXY_FORWARDED_LOCAL;
}

bool mk_proxy_route_bind(const struct mk_conf_ctx *spot, mk_str words, void **data);

extern const char mk_proxy_route_form[];

/* ---- One request ---- */

enum { MK_PROXY_CONNECTION_OPTIONS_MAX = 32 };

/* Fields that Connection names: they are of one connection alone (RFC 9110, section 7.6.1). */
struct mk_proxy_connection_options {
    size_t n;
    mk_str list[MK_PROXY_CONNECTION_OPTIONS_MAX];
};

/* Max-Forwards of OPTIONS and TRACE (RFC 9110, section 7.6.2). */
struct mk_proxy_max_forwards {
    bool is_limited;
    uint32_t left; /* for the backend */
};

struct mk_proxy {
    struct mk_upstream_handler handler;
    const struct mk_proxy_route *route;
    mk_str upgrade; /* the protocol of the tunnel, as long as the body's has_upgrade is true */
    struct mk_proxy_max_forwards hops;
    struct mk_proxy_connection_options named;
};

/* ---- The target and Destination of the request ---- */

/* Lives as long as the request. Absent: no memory, or a path that cannot be written without a doubt about
 * what it means. */
mk_str mk_proxy_target_build(struct mk_request *request, const struct mk_proxy_route *route);

/* Where a COPY or MOVE leads. *value lives as long as the request; absent: the field stays as the client has sent it. 0, or
 * a status: 400 for a malformed one, 502 for one on another server or outside the path of the route, 503 without memory. */
unsigned mk_proxy_target_map_destination(struct mk_request *request, const struct mk_proxy_route *route,
                                         mk_str *value);

/* ---- The fields of the request ---- */

/* Adds them to what is asked. They live as long as the request. 0, or a status: 400 when Connection names too
 * many, 502 for a Destination elsewhere, 503 without memory. */
unsigned mk_proxy_headers_build(struct mk_proxy *p, struct mk_upstream_request_options *options);
/* May a trailer of the client that is passed on have that name? Servers may take it for a field. */
bool mk_proxy_headers_may_send(const struct mk_proxy *p, mk_str name);

/* Max-Forwards: how many proxies an OPTIONS or TRACE may still pass. Sets what is left for the backend. True: the request ends
 * here, and the handler returns *verdict. */
bool mk_proxy_headers_check_hops(struct mk_proxy *p, enum mk_verdict *verdict);

/* ---- Which server: by a cookie that names one, or by a hash of the request ---- */

void mk_proxy_sticky_choose(const struct mk_proxy *p, struct mk_upstream_conn_options *options);
/* Names the server that answered, unless the client has named it. 0 or what mk_response_add_header() answers. */
int mk_proxy_sticky_add_cookie(struct mk_proxy *p);

/* ---- The head of the response ---- */

/* Status and fields. 0, or a negated errno value of mk_response_add_header(). */
int mk_proxy_response_copy_head(struct mk_proxy *p);
/* Passes an interim response on, such as early hints. */
void mk_proxy_response_send_interim(struct mk_proxy *p);

/* ---- The handler ---- */

/* handle() of the handler; `data` is the route. */
enum mk_verdict mk_handler_proxy_handle(struct mk_request *request, struct mk_response *response, void *data);

/* ---- Copies of requests for a second upstream, whose responses are dropped ---- */

/* Those of one worker, its data for the plugin. NULL: no memory. */
struct mk_proxy_mirror *mk_proxy_mirror_new(struct mk_worker *worker);
void mk_proxy_mirror_free(struct mk_proxy_mirror *m);

/* Sends a copy of the request to the mirror of its route, if its share is drawn. The copy is independent of
 * the request from then on. What cannot be copied is not: too much is under way, no memory, or content that
 * is not at hand. */
void mk_proxy_mirror_send(struct mk_proxy_mirror *m, struct mk_worker *worker,
                          const struct mk_proxy_route *route,
                          const struct mk_upstream_request_options *options);

#endif
