/* SPDX-License-Identifier: Apache-2.0 */
/* The servers behind this one, as the plugin upstream shows them in shared memory. */
#ifndef METRICS_UPSTREAMS_H
#define METRICS_UPSTREAMS_H

#include <monkey/upstream.h>

struct upstream_view {
    struct mk_upstream_info info;
    mk_str upstream, server; /* no two views have both in common; they last as long as the view */
    char server_room[MK_UPSTREAM_NAME + 8];
    uint32_t busy; /* connections that serve something, or are being made */
};

/* The server at place *i or behind it, and moves *i past it; false: there are no more. Begin with 0. */
bool metrics_upstreams_next(const struct mk_upstream_stats_table *table, size_t *i,
                            struct upstream_view *out);
/* "up", "slow_start", "down" or "unresolved". */
const char *metrics_upstreams_state(const struct upstream_view *u);
/* For Prometheus; nothing if there are none. */
void metrics_upstreams_print(const struct mk_upstream_stats_table *table, struct mk_buf *out);

#endif
