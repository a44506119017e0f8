/* SPDX-License-Identifier: Apache-2.0 */
/* http[s]://HOST[:PORT][/PATH], and the addresses behind it. */
#ifndef LOAD_URL_H
#define LOAD_URL_H

#include "os/sockaddr.h"

enum { LOAD_URL_HOST_MAX = 255, LOAD_URL_ADDRESSES_MAX = 8 };

struct load_url {
    mk_str whole;
    bool tls;
    mk_str authority;                 /* HOST[:PORT] as written: for the field Host */
    mk_str target;                    /* begins with '/'; a fragment is no part of it, nor is it sent */
    char host[LOAD_URL_HOST_MAX + 1]; /* without brackets */
    uint16_t port;
};

/* Does it begin as one? */
bool load_url_has_scheme(mk_str text);
/* NULL, or what is wrong with it, static. `text` must outlive *out. */
const char *load_url_parse(mk_str text, struct load_url *out) MK_MUST_USE;
/* How many addresses it has, at most LOAD_URL_ADDRESSES_MAX; 0: none, and why. */
size_t load_url_resolve(const struct load_url *u, struct mk_sockaddr at[LOAD_URL_ADDRESSES_MAX],
                        const char **why);

#endif
