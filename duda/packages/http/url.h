/* SPDX-License-Identifier: Apache-2.0 */
/* Absolute URLs with the scheme http or https (RFC 3986; RFC 9110, section 4.2), and references to them. */
#ifndef DUDA_HTTP_URL_H
#define DUDA_HTTP_URL_H

#include <monkey/buf.h>

enum { HTTP_URL_HOST_MAX = 253, HTTP_URL_MAX = 64 * 1024 };

struct http_url {
    bool is_https;
    uint16_t port;
    char host[HTTP_URL_HOST_MAX + 1]; /* in lower case; an IPv6 address has no brackets */
    /* The host, with brackets if needed, and the port, unless it is the default port of the scheme. */
    char authority[HTTP_URL_HOST_MAX + 9];
    mk_str path;   /* a slice of the parsed text, as is `target`; begins with '/', or is empty */
    mk_str target; /* path and query; begins with '/' or '?', or is empty */
};

/* Parses an absolute URL, and ignores its fragment. Returns NULL, or a static text with the reason why it is
 * invalid. A URL with credentials (user@host) is invalid, because they can disguise the host. Numeric hosts
 * must be complete addresses: `127.1` and `0x7f000001` are invalid. */
const char *http_url_parse(mk_str text, struct http_url *out);
/* Appends the URL in its normal form, without fragment: "https://example.org/path?query". */
void http_url_write(const struct http_url *url, struct mk_buf *out);
/* Resolves a reference, such as the value of a Location header, against the URL `base` (RFC 3986, section
 * 5.2), and appends the absolute URL. Bytes that a URL cannot contain are escaped. Returns NULL or a static
 * error text. */
const char *http_url_resolve(const struct http_url *base, mk_str reference, struct mk_buf *out);
/* Do both URLs have the same scheme, host and port? */
bool http_url_has_same_origin(const struct http_url *a, const struct http_url *b);

#endif
