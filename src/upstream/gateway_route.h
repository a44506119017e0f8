/* SPDX-License-Identifier: Apache-2.0 */
/* What a route in [ROUTES] says behind `fastcgi`, `scgi` or `uwsgi`. */
#ifndef MK_UPSTREAM_GATEWAY_ROUTE_H
#define MK_UPSTREAM_GATEWAY_ROUTE_H

#include <monkey/upstream.h>

/* One of the handlers. */
struct mk_gateway {
    const struct mk_plugin *plugin;
    enum mk_upstream_protocol protocol;
    uint16_t port; /* of servers written without one */
    const char *
        split; /* the extension of scripts, unless the pattern or the route gives one; NULL: requests go to a program,
                          not to files */
};

struct mk_gateway_route {
    const struct mk_gateway *gateway;
    struct mk_upstream *upstream;
    mk_str root;   /* as the server behind sees it; absent: where it really is */
    mk_str split;  /* how names of scripts end; absent: there are no files */
    mk_str prefix; /* of the pattern, without a slash at its end: SCRIPT_NAME where there are no files */
    struct mk_field_line *set;
    size_t n_set;
    bool streams;
    bool passes_underscores, passes_forwarded;
    bool raw_paths; /* also those that the program may read as paths of other routes */
    struct mk_upstream_limits limits;
};

bool mk_gateway_bind(const struct mk_gateway *gateway, const struct mk_conf_spot *spot, mk_str words,
                     void **data);

/* The extension in a pattern such as `*.php` or `/blog/?*.php/?*`; absent: it has none. */
mk_str mk_gateway_route_extension(mk_str pattern);
/* The part of a pattern in front of its first wildcard, without a slash at its end. */
mk_str mk_gateway_route_prefix(mk_str pattern);

#endif
