/* SPDX-License-Identifier: Apache-2.0 */
/* Which handler answers which path: patterns in the order they were written, the first that matches decides.
 */
#ifndef MK_WEB_ROUTE_H
#define MK_WEB_ROUTE_H

#include <monkey/handler.h>
#include <monkey/regex.h>

#include "base/compiler.h"
#include "http/path_pattern.h"

struct mk_plugin;

struct mk_route {
    struct mk_pattern pattern; /* where there is a regex, only its text is used, for people */
    struct mk_regex *regex;    /* decides in place of the pattern; NULL: none */
    const struct mk_handler *handler;
    void *data;                     /* what the handler was configured with */
    const struct mk_plugin *plugin; /* whose handler it is; NULL: the server's own */
    mk_str written;                 /* handler and arguments, for people */
};

/* MK_REGEX_LIMIT must never lead to the routes below: they may be less strict. As a truth value it says
 * that the route matches. */
static inline enum mk_regex_result mk_route_matches(const struct mk_route *r, mk_str path)
{
    if (MK_UNLIKELY(r->regex != NULL))
        return mk_regex_match(r->regex, path, NULL);
    return mk_pattern_matches(&r->pattern, path) ? MK_REGEX_MATCH : MK_REGEX_NO_MATCH;
}

/* True if the pattern matches every path: such a route was not chosen for this path in particular. */
static inline bool mk_route_is_catch_all(const struct mk_route *r)
{
    return !r->regex && r->pattern.kind == MK_PATTERN_ALL;
}

#endif
