/* SPDX-License-Identifier: Apache-2.0 */
/* CORS (Fetch standard): which origins may read our responses. */
#ifndef HEADERS_CORS_H
#define HEADERS_CORS_H

#include "condition.h"

/* An origin such as "https://example.org", or with a `*` in place of the first label. */
struct cors_origin {
    mk_str front, back; /* the text before and after the `*`; back is absent without a `*` */
};

struct cors_rule {
    struct condition when; /* contains at most a path */
    struct cors_origin *origins;
    size_t n;
    bool any; /* the origin `*` */
    bool credentials;
    mk_str methods, headers, expose, max_age; /* values of response headers; absent: not set */
    mk_str written;
};

struct cors {
    struct cors_rule *v;
    size_t n;
};

mk_conf_parse_fn headers_cors_parse;
mk_conf_show_fn headers_cors_show;
/* Returns whether this is a preflight request for a path with a rule. *status is the status of its
 * response. */
bool headers_cors_match_preflight(const struct cors *cors, struct mk_request *request, unsigned *status);
void headers_cors_apply(const struct cors *cors, struct response_facts *facts);

#endif
