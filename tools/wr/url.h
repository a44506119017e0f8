/* SPDX-License-Identifier: Apache-2.0 */
/* The URL that a load client is given. */
#ifndef WR_URL_H
#define WR_URL_H

#include "base/str.h"

struct wr_url {
    mk_str whole;
    bool tls;
    mk_str authority; /* what the field Host holds */
    mk_str host;      /* without brackets */
    unsigned port;
    mk_str target; /* begins with '/' */
};

/* http and https only; `out` points into `text`. */
bool wr_url_parse(mk_str text, struct wr_url *out) MK_MUST_USE;
/* Is it this machine, by its name? */
bool wr_url_is_local(const struct wr_url *u);
/* The first argument that is a URL; absent when there is none. */
mk_str wr_url_find(char *const *words);

#endif
