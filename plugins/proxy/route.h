/* SPDX-License-Identifier: Apache-2.0 */
/* What a route in [ROUTES] says behind `proxy`. */
#ifndef PROXY_ROUTE_H
#define PROXY_ROUTE_H

#include <monkey/upstream.h>

enum proxy_forwarded { PROXY_FORWARDED_REPLACE, PROXY_FORWARDED_APPEND, PROXY_FORWARDED_OFF };

/* Client-Cert (RFC 9440): ours, if the client has a certificate; no such field; or what the client says. */
enum proxy_certificate { PROXY_CERTIFICATE_OFF, PROXY_CERTIFICATE_ON, PROXY_CERTIFICATE_PASS };

/* What `Balance hash` is made of. */
enum proxy_hash { PROXY_HASH_NONE, PROXY_HASH_ADDRESS, PROXY_HASH_PATH, PROXY_HASH_COOKIE, PROXY_HASH_FIELD };

/* A share of requests is counted in parts of this. */
enum { PROXY_SHARE_ALL = 10000 };

struct proxy_route {
    const struct mk_plugin *plugin;
    struct mk_upstream *upstream;
    mk_str authority; /* of the target, for `host=upstream` */
    uint16_t port;    /* that an authority without one means */
    mk_str path;      /* of the target; absent: the path is passed as it is */
    mk_str prefix;    /* of the pattern, which `path` replaces */
    mk_str host;      /* the Host to send; absent: the client's */
    enum proxy_forwarded forwarded;
    enum proxy_certificate certificate;
    enum proxy_hash hash;
    mk_str hash_name; /* of the cookie or field */
    mk_str sticky;    /* the cookie that names a server; absent: none */
    bool rewrites_redirects, rewrites_cookies;
    bool raw_paths;             /* also those that the server may read as paths of other routes */
    bool passes_underscores;    /* fields with one in their names */
    bool streams;               /* small uploads, too */
    struct mk_upstream *mirror; /* gets copies of requests; NULL: none */
    unsigned share;             /* of the requests, in parts of PROXY_SHARE_ALL; 0: not said */
    bool is_part;               /* the server behind is a part of this one: monkey/upstream.h */
    mk_str secret;              /* for that part; absent: it asks for no proof */
    bool limits_tunnel;
    uint32_t tunnel_ms; /* 0: no limit */
    struct mk_upstream_limits limits;
};

bool proxy_route_bind(const struct mk_plugin *plugin, const struct mk_conf_spot *spot, mk_str words,
                      void **data);

extern const char proxy_route_form[];

#endif
