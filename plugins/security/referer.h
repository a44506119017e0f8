/* SPDX-License-Identifier: Apache-2.0 */
/* Where a request was found: the host of the page that its Referer names. */
#ifndef SECURITY_REFERER_H
#define SECURITY_REFERER_H

#include <monkey/request.h>

enum security_referer {
    SECURITY_REFERER_NONE = 1,     /* there is none */
    SECURITY_REFERER_SELF = 2,     /* the host that is asked */
    SECURITY_REFERER_SIBLINGS = 4, /* one whose name has the same last two parts */
};

struct security_referers {
    unsigned kinds; /* bits of the above */
    mk_str *hosts;  /* names, or patterns with a star */
    size_t n_hosts;
};

/* Is it one of them? */
bool security_referer_matches(const struct security_referers *of, const struct mk_request *request,
                              mk_str referer);

#endif
