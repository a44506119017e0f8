/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a route, taken apart. */
#ifndef MK_ROUTER_ROUTER_PATTERN_H
#define MK_ROUTER_ROUTER_PATTERN_H

#include <monkey/router.h>

/* Of a pattern: text, or a parameter. */
struct mk_router_segment {
    mk_str text;              /* decoded, a slice of `room`; of a parameter, its name, a slice of the route */
    enum mk_router_type type; /* MK_ROUTER_TYPES: it is text */
};

struct mk_router_pattern {
    mk_str methods; /* as written: GET,POST; empty: any */
    size_t n, n_params;
    struct mk_router_segment segments[MK_ROUTER_SEGMENTS];
};

/* Takes a route apart; `room` has place for MK_ROUTER_PATTERN bytes. False: what is wrong was written to
 * `why`. */
bool mk_router_pattern_parse(struct mk_router_pattern *out, mk_str route, char *room, struct mk_buf *why);

#endif
