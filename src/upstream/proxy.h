/* SPDX-License-Identifier: Apache-2.0 */
/* The handler `proxy`: a route to HTTP servers, and the state of one proxied request. */
#ifndef MK_UPSTREAM_PROXY_H
#define MK_UPSTREAM_PROXY_H

#include "upstream/handler.h"

/* ---- The route ---- */

/* The Forwarded headers that a backend receives. A local backend (monkey/upstream.h) gets signed values
 * instead. */
enum mk_proxy_forwarded {
    MK_PROXY_FORWARDED_REPLACE,
    MK_PROXY_FORWARDED_APPEND,
    MK_PROXY_FORWARDED_OFF,
    MK_PROXY_FORWARDED_LOCAL
};

/* Client-Cert (RFC 9440): removed; set from the client's certificate; or passed through. */
enum mk_proxy_certificate { MK_PROXY_CERTIFICATE_OFF, MK_PROXY_CERTIFICATE_ON, MK_PROXY_CERTIFICATE_PASS };

/* Key for `Balance hash`. */
enum mk_proxy_hash {
    MK_PROXY_HASH_NONE,
    MK_PROXY_HASH_ADDRESS,
    MK_PROXY_HASH_PATH,
    MK_PROXY_HASH_COOKIE,
    MK_PROXY_HASH_FIELD
};

/* Shares of requests are counted in units of 1/MK_PROXY_SHARE_ALL. */
enum { MK_PROXY_SHARE_ALL = 10000 };

struct mk_proxy_route {
    struct mk_upstream *upstream;
    mk_str authority; /* authority of the target, for `host=upstream` */
    uint16_t port;    /* default port of the authority */
    mk_str path;      /* path of the target; absent: the request path is passed unchanged */
    mk_str prefix;    /* prefix of the pattern, replaced with `path` */
    mk_str host;      /* Host header to send; absent: the client's */
    enum mk_proxy_forwarded forwarded;
    enum mk_proxy_certificate certificate;
    enum mk_proxy_hash hash;
    mk_str hash_name; /* name of the cookie or header */
    mk_str sticky;    /* name of the sticky-session cookie; absent: none */
    bool rewrites_redirects, rewrites_cookies;
    bool absolute_destination;  /* send Destination with scheme and host, not only as a path */
    bool is_http2;              /* the servers use HTTP/2 */
    bool raw_paths;             /* allow paths that the server may interpret as paths of other routes */
    bool passes_underscores;    /* pass headers whose names contain underscores */
    bool streams;               /* stream the bodies of requests and responses instead of buffering them */
    struct mk_upstream *mirror; /* upstream that receives copies of requests; NULL: none */
    unsigned share;             /* share of requests in units of MK_PROXY_SHARE_ALL; 0: not set */
    mk_str secret;              /* shared secret of the local backend; absent: requests are not signed */
    const struct mk_route_statuses *intercepts; /* statuses whose responses become our error pages */
    bool limits_tunnel;
    uint32_t tunnel_ms; /* tunnel timeout; 0: no limit */
    struct mk_upstream_limits limits;
};

static inline bool mk_proxy_route_is_local(const struct mk_proxy_route *route)
{
    return route->forwarded == MK_PROXY_FORWARDED_LOCAL;
}

bool mk_proxy_route_bind(const struct mk_conf_ctx *ctx, mk_str words, void **data);

extern const char mk_proxy_route_form[];

/* ---- One request ---- */

enum { MK_PROXY_CONNECTION_OPTIONS_MAX = 32 };

/* Header names listed in Connection: hop-by-hop fields (RFC 9110, section 7.6.1). */
struct mk_proxy_connection_options {
    size_t n;
    mk_str list[MK_PROXY_CONNECTION_OPTIONS_MAX];
};

/* Max-Forwards of OPTIONS and TRACE (RFC 9110, section 7.6.2). */
struct mk_proxy_max_forwards {
    bool is_limited;
    uint32_t left; /* value to forward */
};

struct mk_proxy {
    struct mk_upstream_handler handler;
    const struct mk_proxy_route *route;
    mk_str upgrade; /* protocol to request with Upgrade; used while body.upgrade is
                     * MK_REQUEST_BODY_WANTS_UPGRADE */
    struct mk_proxy_max_forwards hops;
    struct mk_proxy_connection_options named;
};

/* ---- The request to the server ---- */

/* Builds the target, which is valid as long as the request. Absent: out of memory, or a path that cannot be
 * encoded unambiguously. */
mk_str mk_proxy_request_build_target(struct mk_request *request, const struct mk_proxy_route *route);

/* Adds the headers to the upstream request; the headers are valid as long as the request. Returns 0 or a
 * status: 400 if Connection lists too many names or Destination is malformed, 502 if Destination leads to
 * another server or route, 503 if out of memory. */
unsigned mk_proxy_request_build_headers(struct mk_proxy *p, struct mk_upstream_request_options *options);
/* May a client trailer with this name be forwarded? Servers may treat trailers as headers. */
bool mk_proxy_request_sends_trailer(const struct mk_proxy *p, mk_str name);

/* ---- The head of the response ---- */

/* Copies status and headers. Returns 0 or the error of mk_response_add_header(). */
int mk_proxy_response_copy_head(struct mk_proxy *p);
/* Forwards an interim response such as 103 Early Hints. */
void mk_proxy_response_send_interim(struct mk_proxy *p);

/* ---- Copies of requests for a second upstream, whose responses are dropped ---- */

/* Creates the mirror state of one worker (the plugin's worker data). NULL: out of memory. */
struct mk_proxy_mirror *mk_proxy_mirror_new(struct mk_worker *worker);
void mk_proxy_mirror_free(struct mk_proxy_mirror *m);

/* Sends a copy of the request to the route's mirror if the request is sampled. The copy is then independent
 * of the request. A request is not mirrored if too many copies are in flight, if memory runs out, or if its
 * body is not buffered. */
void mk_proxy_mirror_send(struct mk_proxy_mirror *m, struct mk_worker *worker,
                          const struct mk_proxy_route *route,
                          const struct mk_upstream_request_options *options);

#endif
