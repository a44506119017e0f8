/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the routes of a path without looking at all of them. A route whose pattern begins with the name of a
 * folder is found by that name, one without wildcards by its whole text; only patterns that begin with a star
 * and regular expressions are tried one after the other. The order of the routes counts as ever. */
#ifndef MK_WEB_ROUTE_INDEX_H
#define MK_WEB_ROUTE_INDEX_H

#include "base/arena.h"
#include "web/route.h"

struct mk_route_index;

/* Of `n` routes, which must live as long. NULL: they are few, so that looking at all of them is cheaper, or
 * memory is out (see the arena). */
struct mk_route_index *mk_route_index_new(struct mk_arena *arena, const struct mk_route *routes, size_t n);

/* The first route from `from` on that matches the path or gives up, and which of both; the number of routes
 * if there is none. */
size_t mk_route_index_find(const struct mk_route_index *index, size_t from, mk_str path,
                           enum mk_regex_result *result);

#endif
