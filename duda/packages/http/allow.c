/* SPDX-License-Identifier: Apache-2.0 */
#include "allow.h"

#include <string.h>

static bool cut_prefix(mk_str *text, mk_str prefix)
{
    if (!mk_str_eq_nocase(mk_str_first(*text, prefix.len), prefix))
        return false;
    *text = mk_str_skip(*text, prefix.len);
    return true;
}

static enum http_allow_scheme cut_scheme(mk_str *text)
{
    if (cut_prefix(text, MK_STR("https://")))
        return HTTP_ALLOW_HTTPS;
    return cut_prefix(text, MK_STR("http://")) ? HTTP_ALLOW_HTTP : HTTP_ALLOW_ANY;
}

/* Parses "*" or "*:PORT". */
static bool parse_any_host(mk_str text, struct http_allow *out)
{
    uint64_t port = 0;
    mk_str rest = mk_str_skip(text, 1);
    if (rest.len &&
        (rest.p[0] != ':' || !mk_num_parse(mk_str_skip(rest, 1), &port) || port < 1 || port > UINT16_MAX))
        return false;
    out->host = MK_STR("*");
    out->port = (uint16_t)port;
    return true;
}

/* Does the text, which is a valid authority, contain a port? */
static bool has_port(mk_str text)
{
    size_t colon = mk_str_find_last(text, ':'), bracket = mk_str_find_last(text, ']');
    return colon != MK_STR_NONE && (bracket == MK_STR_NONE || colon > bracket);
}

bool http_allow_parse(mk_str text, char host[HTTP_URL_HOST_MAX + 1], struct http_allow *out)
{
    char buf[HTTP_URL_HOST_MAX + 32];
    struct mk_buf whole = mk_buf_fixed(buf, sizeof buf);
    struct http_url url;
    *out = (struct http_allow){.scheme = cut_scheme(&text)};
    out->subdomains = cut_prefix(&text, MK_STR("*."));
    if (!out->subdomains && mk_str_starts(text, MK_STR("*")))
        return parse_any_host(text, out);
    mk_buf_add(&whole, MK_STR("http://"));
    mk_buf_add(&whole, text);
    if (whole.failed || http_url_parse(mk_buf_str(&whole), &url) || url.target.len ||
        mk_str_find(text, '#') != MK_STR_NONE)
        return false;
    memcpy(host, url.host, sizeof url.host);
    out->host = mk_str_from_c(host);
    out->port = has_port(text) ? url.port : 0;
    return true;
}

static bool matches_host(const struct http_allow *entry, mk_str host)
{
    if (mk_str_eq(entry->host, MK_STR("*")))
        return true;
    if (!entry->subdomains)
        return mk_str_eq(entry->host, host);
    return host.len > entry->host.len + 1 && mk_str_ends(host, entry->host) &&
           host.p[host.len - entry->host.len - 1] == '.';
}

bool http_allow_matches(const struct http_allow *entry, const struct http_url *url)
{
    uint16_t port = entry->port ? entry->port : url->is_https ? 443 : 80;
    if (entry->scheme != HTTP_ALLOW_ANY && url->is_https != (entry->scheme == HTTP_ALLOW_HTTPS))
        return false;
    return url->port == port && matches_host(entry, mk_str_from_c(url->host));
}
