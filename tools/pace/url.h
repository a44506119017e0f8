/* SPDX-License-Identifier: Apache-2.0 */
/* http://HOST[:PORT][/PATH], and the addresses behind it. */
#ifndef PACE_URL_H
#define PACE_URL_H

#include "os/addr.h"

enum { PACE_URL_HOST_MAX = 255, PACE_URL_ADDRESSES_MAX = 8 };

struct pace_url {
    mk_str authority; /* HOST[:PORT] as written: for the field Host */
    mk_str target;
    char host[PACE_URL_HOST_MAX + 1]; /* without brackets */
    char port[6];
};

/* NULL, or what is wrong with it, static. `text` must outlive *out. */
const char *pace_url_parse(mk_str text, struct pace_url *out) MK_MUST_USE;
/* How many addresses it has, at most PACE_URL_ADDRESSES_MAX; 0: none, and why. */
size_t pace_url_resolve(const struct pace_url *u, struct mk_addr at[PACE_URL_ADDRESSES_MAX],
                        const char **why);

#endif
