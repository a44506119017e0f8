/* SPDX-License-Identifier: Apache-2.0 */
/* Routes: patterns in configuration order; the first match decides. */
#ifndef MK_WEB_ROUTE_H
#define MK_WEB_ROUTE_H

#include <monkey/handler.h>
#include <monkey/regex.h>

#include "base/compiler.h"
#include "http/path_pattern.h"

struct mk_condition_run;
struct mk_conditions;
struct mk_plugin;

struct mk_route {
    struct mk_pattern pattern;        /* for a regex only its text is set, for messages */
    struct mk_regex *regex;           /* used instead of the pattern; NULL: none */
    const struct mk_conditions *when; /* additional conditions on the request; NULL: none */
    const struct mk_condition_run
        *run; /* the routes from this one on whose conditions have an index; NULL: none */
    const struct mk_handler *handler;
    void *data;                     /* configuration of the handler */
    const struct mk_plugin *plugin; /* plugin of the handler; NULL: built in */
    mk_str written;                 /* handler and arguments, for messages */
};

/* Does the route match the path? MK_REGEX_LIMIT, which counts as a match, must never lead to later routes,
 * because they may be less strict. */
static inline enum mk_regex_result mk_route_matches(const struct mk_route *r, mk_str path)
{
    if (MK_UNLIKELY(r->regex != NULL))
        return mk_regex_match(r->regex, path, NULL);
    bool matches = r->pattern.kind == MK_PATTERN_ALL || mk_pattern_matches(&r->pattern, path);
    return matches ? MK_REGEX_MATCH : MK_REGEX_NO_MATCH;
}

/* Does the pattern match every path? Such a route is not specific to any path. */
static inline bool mk_route_is_catch_all(const struct mk_route *r)
{
    return !r->regex && r->pattern.kind == MK_PATTERN_ALL;
}

#endif
