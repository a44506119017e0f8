/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/endpoint.h"

#include <monkey/plugin.h>

enum { HOST_MAX = 253, PATH_MAX_UN = 107 };

static bool is_host_char(char c)
{
    return mk_char_is_alpha(c) || mk_char_is_digit(c) || c == '.' || c == '-' || c == '_';
}

static bool is_hostname(mk_str host)
{
    for (size_t i = 0; i < host.len; i++)
        if (!is_host_char(host.p[i]))
            return false;
    return host.len && host.len <= HOST_MAX && host.p[0] != '-' && host.p[0] != '.';
}

static bool is_ipv6_address(mk_str host)
{
    struct mk_addr p;
    return host.len < 64 && mk_str_find(host, ':') != MK_STR_NONE && mk_addr_parse(host, &p) && !p.port;
}

static bool parse_port(mk_str text, uint16_t *port)
{
    uint64_t n;
    if (!mk_num_parse(text, &n) || n < 1 || n > UINT16_MAX)
        return false;
    *port = (uint16_t)n;
    return true;
}

static bool parse_bracketed_ipv6(struct mk_endpoint *e, mk_str text)
{
    size_t end = mk_str_find(text, ']');
    if (end == MK_STR_NONE)
        return false;
    mk_str rest = mk_str_skip(text, end + 1);
    e->host = mk_str_skip(mk_str_first(text, end), 1);
    if (!is_ipv6_address(e->host))
        return false;
    return !rest.len || (rest.p[0] == ':' && parse_port(mk_str_skip(rest, 1), &e->port));
}

bool mk_endpoint_parse(struct mk_endpoint *e, mk_str text)
{
    mk_str prefix = MK_STR("unix:");
    e->host = e->path = mk_str_of(NULL, 0);
    e->port = 0;
    if (mk_str_starts(text, prefix)) {
        e->path = mk_str_skip(text, prefix.len);
        return e->path.len && e->path.len <= PATH_MAX_UN;
    }
    if (text.len && text.p[0] == '[')
        return parse_bracketed_ipv6(e, text);
    size_t colon = mk_str_find(text, ':');
    if (colon == MK_STR_NONE) {
        e->host = text;
        return is_hostname(text);
    }
    e->host = mk_str_first(text, colon);
    return is_hostname(e->host) && parse_port(mk_str_skip(text, colon + 1), &e->port);
}
