/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions on the requests of a route: `When` in [ROUTES]. A server may be built without them. */
#ifndef MK_SETUP_ROUTE_CONDITIONS_H
#define MK_SETUP_ROUTE_CONDITIONS_H

#include "conf/table.h"

struct mk_conditions;
struct mk_route;

/* NULL: out of memory, or the server was built without conditions, and the error was reported. */
struct mk_conditions *mk_route_conditions_new(const struct mk_conf_ctx *ctx) MK_MUST_USE;
/* Appends conditions to the list, or reports errors. */
void mk_route_conditions_parse(struct mk_conditions *conditions, const struct mk_conf_ctx *ctx, mk_str text);
/* Sets `run` of the routes. If memory is exhausted, they have no index. */
void mk_route_conditions_index(struct mk_arena *arena, struct mk_route *routes, size_t n);

#endif
