/* SPDX-License-Identifier: Apache-2.0 */
/* Which handler answers which path: patterns in the order they were written, the first that matches decides.
 */
#ifndef MK_WEB_ROUTE_H
#define MK_WEB_ROUTE_H

#include <monkey/handler.h>
#include <regex.h>

#include "base/str.h"

struct mk_plugin;

enum mk_route_kind {
    MK_ROUTE_ALL,    /* a lone star, or slash and star */
    MK_ROUTE_PREFIX, /* a folder and star; the folder itself too, without its last slash */
    MK_ROUTE_SUFFIX, /* *.php */
    MK_ROUTE_EXACT,  /* /about */
    MK_ROUTE_GLOB,   /* anything else with stars and question marks */
    MK_ROUTE_REGEX,  /* Match of Monkey 1.6: found anywhere in the path, in any case of letters */
};

struct mk_route {
    mk_str pattern; /* as written */
    enum mk_route_kind kind;
    regex_t *regex; /* of MK_ROUTE_REGEX */
    const struct mk_handler *handler;
    void *data;                     /* what the handler was configured with */
    const struct mk_plugin *plugin; /* whose handler it is; NULL: the server's own */
    mk_str written;                 /* handler and arguments, for people */
};

/* A pattern begins with '/' or '*'. */
bool mk_route_is_pattern(mk_str pattern);
enum mk_route_kind mk_route_kind_of(mk_str pattern);
bool mk_route_matches(const struct mk_route *r, mk_str path);

#endif
