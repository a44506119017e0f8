/* SPDX-License-Identifier: Apache-2.0 */
/* Which pages of other sites may read our answers (the CORS protocol of the Fetch standard). */
#ifndef HEADERS_CORS_H
#define HEADERS_CORS_H

#include "condition.h"

/* "https://example.org", or with a `*` in front of the host's name. */
struct cors_origin {
    mk_str front, back; /* what stands before and behind the `*`; back is absent when there is none */
};

struct cors_rule {
    struct condition when; /* a path at most */
    struct cors_origin *origins;
    size_t n;
    bool any; /* `*` */
    bool credentials;
    mk_str methods, headers, expose, max_age; /* values of fields, or absent */
    mk_str written;
};

struct cors {
    struct cors_rule *v;
    size_t n;
};

mk_conf_parse_fn headers_cors_parse;
mk_conf_show_fn headers_cors_show;
/* Is it a preflight request for a path that has a rule? *status is what to answer. */
bool headers_cors_preflight(const struct cors *cors, struct mk_request *request, unsigned *status);
void headers_cors_apply(const struct cors *cors, struct response_facts *facts);

#endif
