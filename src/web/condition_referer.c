/* SPDX-License-Identifier: Apache-2.0 */
/* The `referer` of conditions: the host of the referring page. */
#include <monkey/host.h>
#include <monkey/text.h>

#include "web/condition.h"
#include "web/vhost.h"

enum { NAME_MAX_LEN = 253 };

/* Returns the text before the first of these characters. */
static mk_str cut_before_any(mk_str s, const char *ends)
{
    size_t len = 0;
    while (len < s.len && !strchr(ends, s.p[len]))
        len++;
    return mk_str_first(s, len);
}

/* Returns the host of a page's URL, without a trailing dot; absent for any other text. */
static mk_str url_host(mk_str url)
{
    size_t colon = mk_str_find(url, ':');
    mk_str rest = mk_str_skip(url, colon);
    if (!mk_str_starts(rest, MK_STR("://")))
        return mk_str_of(NULL, 0);
    mk_str authority = cut_before_any(mk_str_skip(rest, 3), "/\\?#");
    size_t at = mk_str_find_last(authority, '@');
    mk_str host = at == MK_STR_NONE ? authority : mk_str_skip(authority, at + 1);
    size_t close = mk_str_find(host, ']');
    return close == MK_STR_NONE ? mk_vhost_trim_dot(cut_before_any(host, ":"))
                                : mk_str_first(host, close + 1);
}

/* Returns "example.org" for "img.example.org"; absent for addresses and single labels. */
static mk_str parent_domain(mk_str host)
{
    struct mk_addr peer;
    size_t last = mk_str_find_last(host, '.');
    if (last == MK_STR_NONE || mk_addr_parse(host, &peer))
        return mk_str_of(NULL, 0);
    size_t before = mk_str_find_last(mk_str_first(host, last), '.');
    return before == MK_STR_NONE ? host : mk_str_skip(host, before + 1);
}

static bool is_request_host(const struct mk_request *request, mk_str host)
{
    const struct mk_vhost *site = mk_request_vhost(request);
    if (mk_str_eq_nocase(host, mk_request_host(request)))
        return true;
    mk_str name;
    for (size_t i = 0; site && (name = mk_vhost_name_at(site, i)).p; i++)
        if (mk_str_eq_nocase(host, mk_vhost_trim_dot(name)))
            return true;
    return false;
}

static bool is_listed_host(const struct mk_condition *c, mk_str host)
{
    char buf[NAME_MAX_LEN];
    if (host.len > sizeof buf)
        return false;
    for (size_t i = 0; i < host.len; i++)
        buf[i] = mk_char_lower(host.p[i]);
    host = mk_str_of(buf, host.len);
    for (size_t i = 0; i < c->n_words; i++)
        if (mk_str_match(host, c->words[i]))
            return true;
    return false;
}

bool mk_condition_referer_matches(const struct mk_condition *c, const struct mk_request *request,
                                  mk_str referer)
{
    if (referer.len == 0) /* some clients send an empty header for privacy */
        return c->kinds & MK_REFERER_NONE;
    mk_str host = url_host(referer);
    if (host.len == 0)
        return false;
    if ((c->kinds & MK_REFERER_SELF) && is_request_host(request, host))
        return true;
    mk_str family = c->kinds & MK_REFERER_SIBLINGS ? parent_domain(host) : mk_str_of(NULL, 0);
    if (family.len && mk_str_eq_nocase(family, parent_domain(mk_request_host(request))))
        return true;
    return is_listed_host(c, host);
}
