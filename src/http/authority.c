/* SPDX-License-Identifier: Apache-2.0 */
#include "http/authority.h"

#include <arpa/inet.h>

#include "http/scan.h"

enum { IPV6_TEXT_MAX = 45 };

/* Is the host an IPv6 address in brackets, according to inet_pton()? */
MK_COLD static bool is_ipv6(mk_str host)
{
    char text[IPV6_TEXT_MAX + 1];
    unsigned char address[16];
    if (host.len < 4 || host.len - 2 > IPV6_TEXT_MAX)
        return false;
    memcpy(text, host.p + 1, host.len - 2);
    text[host.len - 2] = '\0';
    return strlen(text) == host.len - 2 && inet_pton(AF_INET6, text, address) == 1;
}

/* Returns the length of the host name at the beginning; 0: invalid. Only the last label may be empty, so that
 * a host name used as a folder name is neither ".." nor hidden. */
static size_t reg_name_len(mk_str s)
{
    const char *at = s.p, *end = s.p + s.len;
    for (;; at++) {
        const char *label = at;
        at = mk_scan_skip(at, end, MK_SCAN_LABEL);
        if (at == end || *at != '.')
            return (size_t)(at - s.p);
        if (at == label)
            return 0;
    }
}

static size_t ip_literal_len(mk_str s)
{
    size_t end = mk_str_find(s, ']');
    return end != MK_STR_NONE && is_ipv6(mk_str_first(s, end + 1)) ? end + 1 : 0;
}

static int parse_port(mk_str digits, uint32_t *port)
{
    uint32_t n = 0;
    for (size_t i = 0; i < digits.len; i++) {
        if (!mk_char_is_digit(digits.p[i]))
            return 400;
        n = n * 10 + (uint32_t)(digits.p[i] - '0');
        if (n > UINT16_MAX)
            return 400;
    }
    *port = digits.len ? n : MK_PORT_NONE;
    return 0;
}

int mk_authority_parse(mk_str authority, mk_str *host, uint32_t *port)
{
    if (authority.len == 0)
        return 400;
    size_t len = authority.p[0] == '[' ? ip_literal_len(authority) : reg_name_len(authority);
    if (len == 0)
        return 400;
    *host = mk_str_first(authority, len);
    *port = MK_PORT_NONE;
    mk_str rest = mk_str_skip(authority, len);
    if (rest.len == 0)
        return 0;
    return rest.p[0] == ':' ? parse_port(mk_str_skip(rest, 1), port) : 400;
}

int mk_authority_parse_cached(struct mk_authority_cache *last, mk_str authority, mk_str *host, uint32_t *port)
{
    if (authority.len && mk_str_eq(authority, mk_str_of(last->text, last->len))) {
        *host = mk_str_of(authority.p, last->host_len);
        *port = last->port;
        return 0;
    }
    int status = mk_authority_parse(authority, host, port);
    if (status || authority.len > sizeof last->text)
        return status;
    memcpy(last->text, authority.p, authority.len);
    last->len = (uint32_t)authority.len;
    last->host_len = (uint32_t)host->len;
    last->port = *port;
    return 0;
}
