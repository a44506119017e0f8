/* SPDX-License-Identifier: Apache-2.0 */
#include "load/url.h"

#include <netdb.h>

#include "base/num.h"

static const mk_str PLAIN = MK_STR_INIT("http://"), SECURE = MK_STR_INIT("https://");

static bool is_visible_ascii(mk_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.p[i] <= ' ' || text.p[i] > '~')
            return false;
    return true;
}

static const char *parse_port(struct load_url *u, mk_str text)
{
    uint64_t port;
    if (text.len == 0) {
        u->port = u->tls ? 443 : 80;
        return NULL;
    }
    if (text.p[0] != ':')
        return "there is more after its address";
    if (!mk_num_parse(mk_str_skip(text, 1), &port) || port < 1 || port > UINT16_MAX)
        return "its port is not a number from 1 to 65535";
    u->port = (uint16_t)port;
    return NULL;
}

static const char *parse_authority(struct load_url *u)
{
    mk_str host = u->authority, port;
    size_t bracket = mk_str_find(host, ']');
    if (mk_str_starts(host, MK_STR("["))) {
        if (bracket == MK_STR_NONE)
            return "its address lacks the closing bracket";
        port = mk_str_skip(host, bracket + 1);
        host = mk_str_of(host.p + 1, bracket - 1);
    } else {
        host = mk_str_first(host, mk_str_find(host, ':'));
        port = mk_str_skip(u->authority, host.len);
    }
    if (host.len == 0 || host.len > LOAD_URL_HOST_MAX || mk_str_find(u->authority, '@') != MK_STR_NONE)
        return "its host is missing or invalid";
    memcpy(u->host, host.p, host.len);
    return parse_port(u, port);
}

bool load_url_has_scheme(mk_str text)
{
    return mk_str_starts(text, PLAIN) || mk_str_starts(text, SECURE);
}

const char *load_url_parse(mk_str text, struct load_url *out)
{
    *out = (struct load_url){.whole = text, .tls = mk_str_starts(text, SECURE)};
    if (!load_url_has_scheme(text))
        return "it does not begin with http:// or https://";
    if (!is_visible_ascii(text))
        return "it has spaces or other characters that must be escaped";
    mk_str rest = mk_str_skip(text, out->tls ? SECURE.len : PLAIN.len);
    rest = mk_str_first(rest, mk_str_find(rest, '#'));
    out->authority = mk_str_first(rest, mk_str_find(rest, '/'));
    out->target = mk_str_skip(rest, out->authority.len);
    if (out->target.len == 0)
        out->target = MK_STR("/");
    if (mk_str_find(out->authority, '?') != MK_STR_NONE)
        return "its query needs a path before it: http://HOST/?QUERY";
    return parse_authority(out);
}

size_t load_url_resolve(const struct load_url *u, struct mk_sockaddr at[LOAD_URL_ADDRESSES_MAX],
                        const char **why)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    int r = getaddrinfo(u->host, NULL, &hints, &found);
    size_t n = 0;
    *why = r ? gai_strerror(r) : "it has no address";
    if (r)
        return 0;
    for (struct addrinfo *a = found; a && n < LOAD_URL_ADDRESSES_MAX; a = a->ai_next) {
        if (a->ai_addrlen > sizeof at[n].v6)
            continue;
        at[n] = (struct mk_sockaddr){.len = a->ai_addrlen};
        memcpy(&at[n].any, a->ai_addr, a->ai_addrlen);
        mk_sockaddr_set_port(&at[n++], u->port);
    }
    freeaddrinfo(found);
    return n;
}

/* ---- Request ---- */

static bool is_header_named(const char *line, mk_str name)
{
    mk_str field = mk_str_from_c(line);
    return mk_str_eq_nocase(mk_str_trim(mk_str_first(field, mk_str_find(field, ':'))), name);
}

static bool has_header(char *const *fields, mk_str name)
{
    for (size_t i = 0; fields[i]; i++)
        if (is_header_named(fields[i], name))
            return true;
    return false;
}

void load_url_write_request(struct mk_buf *out, const struct load_url *url, const char *agent,
                            char *const *fields, bool closes)
{
    mk_buf_addf(out, "GET %.*s HTTP/1.1\r\n", MK_STR_ARG(url->target));
    if (!has_header(fields, MK_STR("Host")))
        mk_buf_addf(out, "Host: %.*s\r\n", MK_STR_ARG(url->authority));
    if (!has_header(fields, MK_STR("User-Agent")))
        mk_buf_addf(out, "User-Agent: %s\r\n", agent);
    for (size_t i = 0; fields[i]; i++)
        if (!closes || !is_header_named(fields[i], MK_STR("Connection")))
            mk_buf_addf(out, "%s\r\n", fields[i]);
    mk_buf_add(out, closes ? MK_STR("Connection: close\r\n\r\n") : MK_STR("\r\n"));
}
