/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/url.h"

#include <netdb.h>

#include "base/num.h"

static bool is_visible(mk_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.p[i] <= ' ' || text.p[i] > '~')
            return false;
    return true;
}

static const char *take_port(struct pace_url *u, mk_str text)
{
    uint64_t port;
    if (!mk_num_parse(text, &port) || port < 1 || port > 65535)
        return "its port is no number from 1 to 65535";
    u->port[mk_num_write(u->port, port)] = '\0';
    return NULL;
}

static const char *take_authority(struct pace_url *u)
{
    mk_str host = u->authority, port = {NULL, 0};
    size_t bracket = mk_str_find(host, ']');
    if (mk_str_starts(host, MK_STR("["))) {
        if (bracket == MK_STR_NONE)
            return "its address lacks the closing bracket";
        port = mk_str_skip(host, bracket + 1);
        host = mk_str_of(host.p + 1, bracket - 1);
    } else {
        size_t colon = mk_str_find(host, ':');
        port = mk_str_skip(host, colon == MK_STR_NONE ? host.len : colon);
        host = mk_str_take(host, colon == MK_STR_NONE ? host.len : colon);
    }
    if (host.len == 0 || host.len > PACE_URL_HOST_MAX || mk_str_find(host, '@') != MK_STR_NONE)
        return "it has no host, or one that is none";
    memcpy(u->host, host.p, host.len);
    if (port.len == 0)
        return take_port(u, MK_STR("80"));
    return port.p[0] == ':' ? take_port(u, mk_str_skip(port, 1)) : "there is more behind its address";
}

const char *pace_url_parse(mk_str text, struct pace_url *out)
{
    static const mk_str scheme = MK_STR_INIT("http://");
    *out = (struct pace_url){0};
    if (!mk_str_starts(text, scheme))
        return "it does not begin with http:// (pace speaks HTTP/1.1 without TLS only)";
    if (!is_visible(text) || mk_str_find(text, '#') != MK_STR_NONE)
        return "it has spaces, a fragment or other characters that belong escaped";
    mk_str rest = mk_str_skip(text, scheme.len);
    size_t slash = mk_str_find(rest, '/');
    out->authority = mk_str_take(rest, slash == MK_STR_NONE ? rest.len : slash);
    out->target = slash == MK_STR_NONE ? MK_STR("/") : mk_str_skip(rest, slash);
    if (mk_str_find(out->authority, '?') != MK_STR_NONE)
        return "its query needs a path before it: http://HOST/?QUERY";
    return take_authority(out);
}

size_t pace_url_resolve(const struct pace_url *u, struct mk_addr at[PACE_URL_ADDRESSES_MAX], const char **why)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    int r = getaddrinfo(u->host, u->port, &hints, &found);
    size_t n = 0;
    *why = r ? gai_strerror(r) : "it has no address";
    if (r)
        return 0;
    for (struct addrinfo *a = found; a && n < PACE_URL_ADDRESSES_MAX; a = a->ai_next) {
        if (a->ai_addrlen > sizeof at[n].v6)
            continue;
        at[n] = (struct mk_addr){.len = a->ai_addrlen};
        memcpy(&at[n].any, a->ai_addr, a->ai_addrlen);
        n++;
    }
    freeaddrinfo(found);
    return n;
}
