/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/url.h"

enum { HTTP_PORT = 80, HTTPS_PORT = 443, PORT_MAX = 65535 };

static bool split_authority(struct wr_url *u)
{
    mk_str rest = u->authority;
    uint64_t port;
    u->port = u->tls ? HTTPS_PORT : HTTP_PORT;
    if (rest.len && rest.p[0] == '[') {
        size_t close = mk_str_find(rest, ']');
        if (close == MK_STR_NONE)
            return false;
        u->host = mk_str_take(mk_str_skip(rest, 1), close - 1);
        rest = mk_str_skip(rest, close + 1);
    } else {
        u->host = mk_str_take(rest, mk_str_find(rest, ':'));
        rest = mk_str_skip(rest, u->host.len);
    }
    if (u->host.len == 0 || rest.len == 0)
        return u->host.len > 0;
    if (rest.p[0] != ':' || !mk_num_parse(mk_str_skip(rest, 1), &port) || port == 0 || port > PORT_MAX)
        return false;
    u->port = (unsigned)port;
    return true;
}

static bool is_clean(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.p[i] <= ' ' || s.p[i] == 0x7f)
            return false;
    return true;
}

bool wr_url_parse(mk_str text, struct wr_url *out)
{
    *out = (struct wr_url){.whole = text};
    mk_str rest;
    if (mk_str_starts(text, MK_STR("http://"))) {
        rest = mk_str_skip(text, 7);
    } else if (mk_str_starts(text, MK_STR("https://"))) {
        rest = mk_str_skip(text, 8);
        out->tls = true;
    } else {
        return false;
    }
    rest = mk_str_take(rest, mk_str_find(rest, '#'));
    out->authority = mk_str_take(rest, mk_str_find(rest, '/'));
    out->target = mk_str_skip(rest, out->authority.len);
    if (out->target.len == 0)
        out->target = MK_STR("/");
    return is_clean(text) && mk_str_find(out->authority, '@') == MK_STR_NONE &&
           mk_str_find(out->authority, '?') == MK_STR_NONE && split_authority(out);
}

bool wr_url_is_local(const struct wr_url *u)
{
    return mk_str_eq_nocase(u->host, MK_STR("localhost")) || mk_str_eq(u->host, MK_STR("::1")) ||
           mk_str_starts(u->host, MK_STR("127."));
}

mk_str wr_url_find(char *const *words)
{
    for (size_t i = 0; words[i]; i++) {
        mk_str word = mk_str_from_c(words[i]);
        if (mk_str_starts(word, MK_STR("http://")) || mk_str_starts(word, MK_STR("https://")))
            return word;
    }
    return (mk_str){NULL, 0};
}
