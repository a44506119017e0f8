/* SPDX-License-Identifier: Apache-2.0 */
/* The target of a request: first as the client sent it, then as each rewrite or route changed it. Each step
 * is a value of its own that never changes. */
#ifndef MK_WEB_ASKED_TYPE_H
#define MK_WEB_ASKED_TYPE_H

#include <monkey/http.h>

#include "base/def.h"
#include "http/target.h"

enum mk_asked_by {
    MK_ASKED_BY_CLIENT,
    MK_ASKED_BY_HOOK,    /* on_request rewrote it */
    MK_ASKED_BY_HANDLER, /* a handler did: it is a GET or HEAD without content from here on */
    MK_ASKED_BY_ROUTE,   /* static found an index file or a fallback: only the routes are tried again */
};

/* Other paths that a program may take a path for: see http/path_variants.h. What follows scripts comes last. */
struct mk_variants {
    mk_str *list;
    size_t n, n_readings;
};

struct mk_asked {
    enum mk_asked_by by;
    enum mk_method method;
    unsigned path_flags; /* MK_PATH_... */
    bool is_plain;       /* mk_path_is_plain(): the target's path was not decoded */
    bool no_content;     /* the content that was received is not for this path */
    struct mk_target target;
    mk_str path;                   /* decoded; absent: the target was not valid */
    const struct mk_asked *before; /* NULL: as received */
    unsigned left_at;              /* with BY_ROUTE: the route that led here from `before` */
    struct mk_variants *variants;  /* of the path; NULL: they were not needed yet */
    const char *marks;             /* how the path was written, as of mk_path_decode_marked(); likewise */
};

#endif
