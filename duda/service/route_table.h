/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of a service, made ready to be looked up. No request here. */
#ifndef DUDA_SERVICE_ROUTE_TABLE_H
#define DUDA_SERVICE_ROUTE_TABLE_H

#include <duda/service.h>
#include <monkey/router.h>

#include "service/crash_table.h"

/* A function before or after a handler; the inner ones lead to the outer ones. */
struct duda_middleware {
    const struct duda_middleware *outer;
    duda_fn *fn;
};

/* A route with what its groups add. */
struct duda_route_entry {
    const struct duda_route *route;
    mk_str pattern;                      /* the whole one */
    mk_str host;                         /* empty: any */
    struct duda_route_slot *route_slot;  /* on the board; may be NULL */
    uint32_t series;                     /* its statistics; 0: there are too many routes */
    const struct duda_middleware *after; /* in the order of calls */
    size_t n_before;
    const struct duda_route *const *before; /* DUDA_IS_BEFORE or DUDA_IS_REQUIRE */
};

/* All routes of a service. */
struct duda_route_table;

/* Lives as long as the configuration. NULL: something is wrong, which has been reported. */
struct duda_route_table *duda_route_table_new(struct mk_config *config, const struct duda_service *service);

/* What answers. Without a line *router is where match->allowed is from, or NULL if no route has the path. */
const struct duda_route_entry *duda_route_table_find(const struct duda_route_table *t, mk_str host,
                                                     mk_str method, mk_str path,
                                                     struct mk_router_match *match,
                                                     const struct mk_router **router);

/* The i-th line of the service, in the order of its source; NULL: there are no more. */
const struct duda_route_entry *duda_route_table_at(const struct duda_route_table *t, size_t i);

#endif
