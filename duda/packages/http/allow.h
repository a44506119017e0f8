/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts of `AllowHosts`, to whose URLs services may send requests. */
#ifndef DUDA_HTTP_ALLOW_H
#define DUDA_HTTP_ALLOW_H

#include "url.h"

enum http_allow_scheme { HTTP_ALLOW_ANY, HTTP_ALLOW_HTTP, HTTP_ALLOW_HTTPS };

/* An entry: [SCHEME://]HOST[:PORT]. */
struct http_allow {
    enum http_allow_scheme scheme;
    mk_str host;     /* in lower case; "*": any */
    bool subdomains; /* "*.HOST": only hosts that end in ".HOST" */
    uint16_t port;   /* 0: the default port of the scheme */
};

/* Parses an entry, whose host is written to `host`. Returns false if it is invalid. */
bool http_allow_parse(mk_str text, char host[HTTP_URL_HOST_MAX + 1], struct http_allow *out);
/* Does the entry allow the URL? */
bool http_allow_matches(const struct http_allow *entry, const struct http_url *url);

#endif
