/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/server.h"

enum { HOST_MAX = 253, PATH_MAX_UN = 107 };

static bool is_host_char(char c)
{
    return mk_char_is_alpha(c) || mk_char_is_digit(c) || c == '.' || c == '-' || c == '_';
}

static bool is_host(mk_str host)
{
    for (size_t i = 0; i < host.len; i++)
        if (!is_host_char(host.p[i]))
            return false;
    return host.len && host.len <= HOST_MAX && host.p[0] != '-' && host.p[0] != '.';
}

static bool is_address6(mk_str host)
{
    struct mk_peer p;
    return host.len < 64 && mk_str_find(host, ':') != MK_STR_NONE && mk_peer_parse(host, &p) && !p.port;
}

static bool parse_port(mk_str text, uint16_t *port)
{
    uint64_t n;
    if (!mk_num_parse(text, &n) || n < 1 || n > UINT16_MAX)
        return false;
    *port = (uint16_t)n;
    return true;
}

static bool parse_bracketed(struct mk_server *s, mk_str text)
{
    size_t end = mk_str_find(text, ']');
    if (end == MK_STR_NONE)
        return false;
    mk_str rest = mk_str_skip(text, end + 1);
    s->host = mk_str_skip(mk_str_first(text, end), 1);
    if (!is_address6(s->host))
        return false;
    return !rest.len || (rest.p[0] == ':' && parse_port(mk_str_skip(rest, 1), &s->port));
}

bool mk_server_parse(struct mk_server *s, mk_str text)
{
    mk_str prefix = MK_STR("unix:");
    s->host = s->path = mk_str_of(NULL, 0);
    s->port = 0;
    if (mk_str_starts(text, prefix)) {
        s->path = mk_str_skip(text, prefix.len);
        return s->path.len && s->path.len <= PATH_MAX_UN;
    }
    if (text.len && text.p[0] == '[')
        return parse_bracketed(s, text);
    size_t colon = mk_str_find(text, ':');
    if (colon == MK_STR_NONE) {
        s->host = text;
        return is_host(text);
    }
    s->host = mk_str_first(text, colon);
    return is_host(s->host) && parse_port(mk_str_skip(text, colon + 1), &s->port);
}
