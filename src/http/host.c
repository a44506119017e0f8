/* SPDX-License-Identifier: Apache-2.0 */
#include "http/host.h"

#include <arpa/inet.h>

#include "base/num.h"
#include "http/scan.h"

enum { IPV6_TEXT_MAX = 45 };

/* Brackets around an address, which inet_pton knows best. */
static bool is_ipv6(mk_str host)
{
    char text[IPV6_TEXT_MAX + 1];
    unsigned char address[16];
    if (host.len < 4 || host.len - 2 > IPV6_TEXT_MAX)
        return false;
    memcpy(text, host.p + 1, host.len - 2);
    text[host.len - 2] = '\0';
    return strlen(text) == host.len - 2 && inet_pton(AF_INET6, text, address) == 1;
}

/* Labels may be empty only at the end, so that no host is ".." or hides in a folder's name. */
static bool is_name(mk_str host)
{
    char last = '.';
    for (size_t i = 0; i < host.len; i++) {
        if (!mk_scan_is(host.p[i], MK_SCAN_HOST) || (last == '.' && host.p[i] == '.'))
            return false;
        last = host.p[i];
    }
    return host.len > 0 && host.p[0] != '.';
}

static bool read_port(mk_str digits, uint32_t *port)
{
    uint64_t n = MK_PORT_NONE;
    if (digits.len && (!mk_num_parse(digits, &n) || n > UINT16_MAX))
        return false;
    *port = (uint32_t)n;
    return true;
}

int mk_host_parse(mk_str authority, mk_str *host, uint32_t *port)
{
    bool bracket = authority.len && authority.p[0] == '[';
    size_t end = bracket ? mk_str_find(authority, ']') : mk_str_find(authority, ':');
    if (bracket && end == MK_STR_NONE)
        return 400;
    *host = mk_str_take(authority, bracket ? end + 1 : end);
    mk_str rest = mk_str_skip(authority, host->len);
    if (rest.len && rest.p[0] != ':')
        return 400;
    if (!read_port(mk_str_skip(rest, 1), port))
        return 400;
    return (bracket ? is_ipv6(*host) : is_name(*host)) ? 0 : 400;
}
