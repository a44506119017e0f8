/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of a service, compiled for lookup. Independent of requests. */
#ifndef DUDA_SERVICE_ROUTE_TABLE_H
#define DUDA_SERVICE_ROUTE_TABLE_H

#include <duda/service.h>
#include <monkey/router.h>

#include "service/crash_table.h"
#include "service/data_checks.h"

/* A DUDA_AFTER() or DUDA_ERROR() entry. Inner entries link to outer ones. */
struct duda_middleware {
    const struct duda_middleware *outer;
    const struct duda_route *entry;
    struct duda_route_slot *route_slot; /* counts crashes of error handlers; may be NULL */
};

/* The paths to which a DUDA_CORS() entry applies, even if no route matches them. */
struct duda_cors_scope {
    const struct duda_cors_scope *next;
    mk_str host, prefix;
    const struct duda_cors *cors;
};

/* A route with the settings inherited from its groups. */
struct duda_route_entry {
    const struct duda_route *route;
    const struct duda_route_table *table; /* NULL: a background task */
    mk_str pattern;                       /* full pattern, with group prefixes */
    mk_str host;                          /* empty: any host */
    struct duda_route_slot *route_slot;   /* slot in the crash table; may be NULL */
    uint32_t series;                      /* series of the statistics; 0: none (too many routes) */
    const struct duda_middleware *after;  /* in call order */
    const struct duda_middleware *errors; /* in call order */
    const struct duda_cors *cors;         /* NULL: only for pages of the same origin */
    size_t n_before;
    const struct duda_route *const *before; /* DUDA_IS_BEFORE, DUDA_IS_REQUIRE or DUDA_IS_AROUND */
};

/* The paths to which a DUDA_ERROR() entry applies, even if no route matches them. */
struct duda_error_scope {
    const struct duda_error_scope *next; /* in reverse order of the entries */
    mk_str prefix;                       /* pattern of the group */
    struct duda_route_entry entry;       /* stands for a route where no route matches */
};

/* Returns whether the entries of the table have a size that this release or an earlier one has used. */
static inline bool duda_routes_are_supported(const struct duda_routes *t)
{
    return t->entry_size >= offsetof(struct duda_route, body_max) &&
           t->entry_size <= sizeof(struct duda_route);
}

/* Returns the i-th entry of a table, whose entries have the size that the service was built with. */
static inline const struct duda_route *duda_routes_at(const struct duda_routes *t, size_t i)
{
    return (const void *)((const char *)t->first + i * t->entry_size);
}

/* All routes of a service. */
struct duda_route_table;

/* Compiles the routes of the service. The table lives as long as the configuration. On failure, reports the
 * error and returns NULL. */
struct duda_route_table *duda_route_table_new(struct mk_config *config, const struct duda_service *service,
                                              const struct duda_data_checks *checks);

/* Returns the matching route; NULL if none matches. *router is then the router whose match->allowed applies
 * (405), or NULL if no route matches the path. */
const struct duda_route_entry *duda_route_table_find(const struct duda_route_table *t, mk_str host,
                                                     mk_str method, mk_str path,
                                                     struct mk_router_match *match,
                                                     const struct mk_router **router);

/* Returns an entry with the error handlers of the innermost group that contains the path; NULL if there are
 * none. */
const struct duda_route_entry *duda_route_table_find_errors(const struct duda_route_table *t, mk_str host,
                                                            mk_str path);

/* Returns whether the service has DUDA_CORS() entries. */
bool duda_route_table_has_cors(const struct duda_route_table *t);
/* Returns the policy of the innermost group that contains the path; NULL if there is none. */
const struct duda_cors *duda_route_table_find_cors(const struct duda_route_table *t, mk_str host,
                                                   mk_str path);

/* Returns the i-th route of the service, in source order; NULL if `i` is out of range. */
const struct duda_route_entry *duda_route_table_at(const struct duda_route_table *t, size_t i);

#endif
