/* SPDX-License-Identifier: Apache-2.0 */
/* Response lifetimes: Expires and Cache-Control. */
#ifndef HEADERS_EXPIRES_H
#define HEADERS_EXPIRES_H

#include "condition.h"

struct expiry {
    struct condition when;
    uint32_t seconds;
    bool off; /* matching responses get no headers */
    mk_str cache_control;
    mk_str written;
};

struct expiries {
    struct expiry *v;
    size_t n;
};

mk_conf_parse_fn headers_expires_parse;
mk_conf_show_fn headers_expires_show;
void headers_expires_apply(const struct expiries *list, struct response_facts *facts);

#endif
