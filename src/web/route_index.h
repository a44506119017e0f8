/* SPDX-License-Identifier: Apache-2.0 */
/* Index of routes, which avoids testing all routes for each path. A pattern that begins with a folder name is
 * found by that name, a pattern without wildcards by its whole text; only regular expressions and patterns
 * that begin with a star are tested one by one. The order of the routes is preserved. */
#ifndef MK_WEB_ROUTE_INDEX_H
#define MK_WEB_ROUTE_INDEX_H

#include "base/arena.h"
#include "web/route.h"

struct mk_route_index;

/* Creates an index of `n` routes, which must outlive it. NULL: a linear search is cheaper, or out of memory
 * (see the arena). */
struct mk_route_index *mk_route_index_new(struct mk_arena *arena, const struct mk_route *routes, size_t n);

/* Returns the index of the first route at or after `from` that matches the path or exceeds the regex limit,
 * and stores which of the two in *result. Returns the number of routes if there is none. */
size_t mk_route_index_find(const struct mk_route_index *index, size_t from, mk_str path,
                           enum mk_regex_result *result);

#endif
