/* SPDX-License-Identifier: Apache-2.0 */
/* Which handler answers which path: patterns in the order they were written, the first that matches decides.
 */
#ifndef MK_WEB_ROUTE_H
#define MK_WEB_ROUTE_H

#include <monkey/handler.h>
#include <regex.h>

#include "http/pattern.h"

struct mk_plugin;

struct mk_route {
    struct mk_pattern pattern; /* not asked where there is a regex: then its text is that */
    regex_t *regex; /* Match of Monkey 1.6: found anywhere in the path, in any case of letters; else NULL */
    const struct mk_handler *handler;
    void *data;                     /* what the handler was configured with */
    const struct mk_plugin *plugin; /* whose handler it is; NULL: the server's own */
    mk_str written;                 /* handler and arguments, for people */
};

bool mk_route_matches(const struct mk_route *r, mk_str path);
/* Does it take whatever comes, only for being the last one? */
bool mk_route_is_catch_all(const struct mk_route *r);

#endif
