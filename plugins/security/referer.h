/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the Referer: the host of the referring page. */
#ifndef SECURITY_REFERER_H
#define SECURITY_REFERER_H

#include <monkey/request.h>

enum security_referer {
    SECURITY_REFERER_NONE = 1,     /* requests without a Referer */
    SECURITY_REFERER_SELF = 2,     /* pages of the requested host */
    SECURITY_REFERER_SIBLINGS = 4, /* pages of hosts with the same last two labels */
};

struct security_referers {
    unsigned kinds; /* bit mask of the values above */
    mk_str *hosts;  /* names, or patterns with a star */
    size_t n_hosts;
};

/* Returns whether the Referer matches the list. */
bool security_referer_matches(const struct security_referers *of, const struct mk_request *request,
                              mk_str referer);

#endif
