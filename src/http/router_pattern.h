/* SPDX-License-Identifier: Apache-2.0 */
/* Parser for routes, such as `GET,POST /users/:id<int>`. */
#ifndef MK_HTTP_ROUTER_PATTERN_H
#define MK_HTTP_ROUTER_PATTERN_H

#include <monkey/router.h>

/* Segment of a pattern: text, or a parameter. */
struct mk_router_segment {
    mk_str text; /* decoded text, a slice of `buf`; or the name of a parameter, a slice of the route */
    enum mk_router_type type; /* MK_ROUTER_NO_TYPE: text */
};

struct mk_router_pattern {
    mk_str methods; /* as written: GET,POST; empty: any */
    size_t n, n_params;
    struct mk_router_segment segments[MK_ROUTER_SEGMENTS_MAX];
};

/* Parses a route; `buf` holds MK_ROUTER_PATTERN_MAX bytes. False: the route is invalid; `error` holds the
 * reason. */
bool mk_router_pattern_parse(struct mk_router_pattern *out, mk_str route, char *buf, struct mk_buf *error);

#endif
