/* SPDX-License-Identifier: Apache-2.0 */
/* Parses http[s]://HOST[:PORT][/PATH], resolves its addresses, and writes requests for it. */
#ifndef LOAD_URL_H
#define LOAD_URL_H

#include "base/buf.h"
#include "os/sockaddr.h"

enum { LOAD_URL_HOST_MAX = 255, LOAD_URL_ADDRESSES_MAX = 8 };

struct load_url {
    mk_str whole;
    bool tls;
    mk_str authority;                 /* HOST[:PORT] as written, for the Host header */
    mk_str target;                    /* begins with '/'; without the fragment, which is never sent */
    char host[LOAD_URL_HOST_MAX + 1]; /* without brackets */
    uint16_t port;
};

/* Returns whether the text begins with http:// or https://. */
bool load_url_has_scheme(mk_str text);
/* Returns NULL or a static error text. `text` must outlive *out. */
const char *load_url_parse(mk_str text, struct load_url *out) MK_MUST_USE;
/* Returns the number of addresses, at most LOAD_URL_ADDRESSES_MAX; if 0, *why points to the reason. */
size_t load_url_resolve(const struct load_url *u, struct mk_sockaddr at[LOAD_URL_ADDRESSES_MAX],
                        const char **why);

/* Writes an HTTP/1.1 GET request. `fields` is a NULL-terminated list of header lines "Name: value"; its Host
 * and User-Agent replace the default ones. `closes` adds Connection: close, whatever `fields` contains. */
void load_url_write_request(struct mk_buf *out, const struct load_url *url, const char *agent,
                            char *const *fields, bool closes);

#endif
