/* SPDX-License-Identifier: Apache-2.0 */
#include "os/sockaddr.h"

#include <arpa/inet.h>

#include "base/num.h"

static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};

static mk_err parse_unix(mk_str path, struct mk_sockaddr *out)
{
    if (path.len == 0 || path.len >= sizeof out->un.sun_path)
        return -EINVAL;
    out->un.sun_family = AF_UNIX;
    memcpy(out->un.sun_path, path.p, path.len);
    out->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.len + 1);
    return 0;
}

static mk_err parse_host(mk_str host, uint16_t port, struct mk_sockaddr *out)
{
    char text[INET6_ADDRSTRLEN];
    bool bracketed = host.len >= 2 && host.p[0] == '[' && host.p[host.len - 1] == ']';
    if (bracketed)
        host = mk_str_of(host.p + 1, host.len - 2);
    if (mk_str_eq(host, MK_STR("*")))
        host = MK_STR("0.0.0.0");
    if (host.len >= sizeof text)
        return -EINVAL;
    memcpy(text, host.p, host.len);
    text[host.len] = '\0';
    if (!bracketed && inet_pton(AF_INET, text, &out->v4.sin_addr) == 1) {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons(port);
        out->len = sizeof out->v4;
        return 0;
    }
    if (inet_pton(AF_INET6, text, &out->v6.sin6_addr) == 1) {
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = htons(port);
        out->len = sizeof out->v6;
        return 0;
    }
    return -EINVAL;
}

mk_err mk_sockaddr_parse(mk_str text, mk_str host, struct mk_sockaddr *out)
{
    memset(out, 0, sizeof *out);
    if (mk_str_starts(text, MK_STR("unix:")))
        return parse_unix(mk_str_skip(text, 5), out);
    size_t colon = mk_str_find_last(text, ':');
    mk_str digits = text;
    if (colon != MK_STR_NONE) {
        host = mk_str_first(text, colon);
        digits = mk_str_skip(text, colon + 1);
        if (mk_str_find(host, ':') != MK_STR_NONE && host.p[0] != '[')
            return -EINVAL; /* an IPv6 address needs brackets when a port follows */
    }
    uint64_t port;
    if (!mk_num_parse(digits, &port) || port > UINT16_MAX)
        return -EINVAL;
    return parse_host(host, (uint16_t)port, out);
}

uint16_t mk_sockaddr_port(const struct mk_sockaddr *a)
{
    if (a->any.sa_family == AF_INET)
        return ntohs(a->v4.sin_port);
    return a->any.sa_family == AF_INET6 ? ntohs(a->v6.sin6_port) : 0;
}

void mk_sockaddr_set_port(struct mk_sockaddr *a, uint16_t port)
{
    if (a->any.sa_family == AF_INET)
        a->v4.sin_port = htons(port);
    else if (a->any.sa_family == AF_INET6)
        a->v6.sin6_port = htons(port);
}

bool mk_sockaddr_is_any(const struct mk_sockaddr *a)
{
    if (a->any.sa_family == AF_INET)
        return a->v4.sin_addr.s_addr == INADDR_ANY;
    return a->any.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&a->v6.sin6_addr);
}

void mk_sockaddr_format(const struct mk_sockaddr *a, struct mk_buf *out)
{
    char text[INET6_ADDRSTRLEN] = "?";
    if (a->any.sa_family == AF_UNIX) {
        mk_buf_addf(out, "unix:%s", a->un.sun_path);
    } else if (a->any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &a->v6.sin6_addr, text, sizeof text);
        mk_buf_addf(out, "[%s]:%u", text, mk_sockaddr_port(a));
    } else {
        inet_ntop(AF_INET, &a->v4.sin_addr, text, sizeof text);
        mk_buf_addf(out, "%s:%u", text, mk_sockaddr_port(a));
    }
}

bool mk_sockaddr_eq(const struct mk_sockaddr *a, const struct mk_sockaddr *b)
{
    if (a->any.sa_family != b->any.sa_family || mk_sockaddr_port(a) != mk_sockaddr_port(b))
        return false;
    if (a->any.sa_family == AF_UNIX)
        return strcmp(a->un.sun_path, b->un.sun_path) == 0;
    if (a->any.sa_family == AF_INET)
        return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
    return IN6_ARE_ADDR_EQUAL(&a->v6.sin6_addr, &b->v6.sin6_addr);
}

mk_err mk_sockaddr_getsockname(int fd, struct mk_sockaddr *out)
{
    memset(out, 0, sizeof *out);
    out->len = sizeof out->un;
    return getsockname(fd, &out->any, &out->len) < 0 ? mk_err_last() : 0;
}

void mk_sockaddr_to_addr(const struct mk_sockaddr *a, struct mk_addr *p)
{
    memset(p, 0, sizeof *p);
    p->port = mk_sockaddr_port(a);
    if (a->any.sa_family == AF_INET) {
        memcpy(p->ip, v4_prefix, sizeof v4_prefix);
        memcpy(p->ip + sizeof v4_prefix, &a->v4.sin_addr, 4);
    } else if (a->any.sa_family == AF_INET6) {
        memcpy(p->ip, &a->v6.sin6_addr, 16);
    } else {
        p->is_unix = 1;
    }
}

static char *format_byte(char *at, unsigned n)
{
    if (n >= 100)
        *at++ = (char)('0' + n / 100);
    if (n >= 10)
        *at++ = (char)('0' + n / 10 % 10);
    *at++ = (char)('0' + n % 10);
    return at;
}

/* Hand-written for speed: it runs for every access log line and every proxied request. */
static void format_ipv4(const uint8_t ip[4], struct mk_buf *out)
{
    char text[sizeof "255.255.255.255."], *at = text;
    for (unsigned i = 0; i < 4; i++) {
        at = format_byte(at, ip[i]);
        *at++ = '.';
    }
    mk_buf_add(out, mk_str_of(text, (size_t)(at - text) - 1));
}

void mk_addr_format(const struct mk_addr *p, struct mk_buf *out)
{
    char text[INET6_ADDRSTRLEN] = "?";
    if (p->is_unix)
        mk_buf_add(out, MK_STR("unix:"));
    else if (memcmp(p->ip, v4_prefix, sizeof v4_prefix) == 0)
        format_ipv4(p->ip + sizeof v4_prefix, out);
    else
        mk_buf_add(out, mk_str_from_c(inet_ntop(AF_INET6, p->ip, text, sizeof text) ? text : "?"));
}

void mk_addr_client_prefix(const struct mk_addr *p, struct mk_addr *out)
{
    enum { V6_NETWORK = 8 };
    *out = *p;
    out->port = 0;
    if (memcmp(p->ip, v4_prefix, sizeof v4_prefix) != 0)
        memset(out->ip + V6_NETWORK, 0, sizeof out->ip - V6_NETWORK);
}
