/* SPDX-License-Identifier: Apache-2.0 */
#include "http/target.h"

#include "http/scan.h"

static void split_query(mk_str text, struct mk_target *out)
{
    size_t mark = mk_str_find(text, '?');
    out->path = mk_str_first(text, mark);
    if (mark != MK_STR_NONE)
        out->query = mk_str_skip(text, mark + 1);
}

static int parse_authority(mk_str text, struct mk_target *out)
{
    out->form = MK_TARGET_AUTHORITY;
    out->authority = text;
    int status = mk_authority_parse(text, &out->host, &out->port);
    return status || out->port != MK_PORT_NONE ? status : 400;
}

static int parse_absolute(mk_str text, struct mk_target *out)
{
    out->form = MK_TARGET_ABSOLUTE;
    out->scheme = mk_str_first(text, mk_str_find(text, ':'));
    if (!mk_str_eq_nocase(out->scheme, MK_STR("http")) && !mk_str_eq_nocase(out->scheme, MK_STR("https")))
        return 400;
    mk_str rest = mk_str_skip(text, out->scheme.len);
    if (!mk_str_starts(rest, MK_STR("://")))
        return 400;
    rest = mk_str_skip(rest, 3);
    size_t end = 0;
    while (end < rest.len && rest.p[end] != '/' && rest.p[end] != '?')
        end++;
    out->authority = mk_str_first(rest, end);
    split_query(mk_str_skip(rest, end), out);
    if (out->path.len == 0)
        out->path = MK_STR("/");
    return mk_authority_parse(out->authority, &out->host, &out->port);
}

bool mk_target_is_visible(mk_str text)
{
    const char *path;
    return text.len && mk_scan_target(text.p, text.p + text.len, &path) == text.p + text.len;
}

int mk_target_parse(enum mk_method method, mk_str text, struct mk_target *out)
{
    if (mk_target_is_visible(text))
        return mk_target_parse_checked(method, text, out);
    *out = (struct mk_target){.port = MK_PORT_NONE};
    return 400;
}

int mk_target_parse_checked(enum mk_method method, mk_str text, struct mk_target *out)
{
    *out = (struct mk_target){.port = MK_PORT_NONE};
    if (method == MK_METHOD_CONNECT)
        return parse_authority(text, out);
    if (text.p[0] == '/') {
        out->form = MK_TARGET_ORIGIN;
        split_query(text, out);
        return 0;
    }
    if (method != MK_METHOD_OPTIONS || !mk_str_eq(text, MK_STR("*")))
        return parse_absolute(text, out);
    out->form = MK_TARGET_ASTERISK;
    out->path = text;
    return 0;
}
