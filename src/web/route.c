/* SPDX-License-Identifier: Apache-2.0 */
#include "web/route.h"

static bool is_wild(mk_str s)
{
    return mk_str_find(s, '*') != MK_STR_NONE || mk_str_find(s, '?') != MK_STR_NONE;
}

bool mk_route_is_pattern(mk_str pattern)
{
    return pattern.len > 0 && (pattern.p[0] == '/' || pattern.p[0] == '*');
}

enum mk_route_kind mk_route_kind_of(mk_str pattern)
{
    if (mk_str_eq(pattern, MK_STR("*")) || mk_str_eq(pattern, MK_STR("/*")))
        return MK_ROUTE_ALL;
    if (!is_wild(pattern))
        return MK_ROUTE_EXACT;
    if (mk_str_ends(pattern, MK_STR("/*")) && !is_wild(mk_str_take(pattern, pattern.len - 1)))
        return MK_ROUTE_PREFIX;
    if (pattern.p[0] == '*' && !is_wild(mk_str_skip(pattern, 1)))
        return MK_ROUTE_SUFFIX;
    return MK_ROUTE_GLOB;
}

bool mk_route_matches(const struct mk_route *r, mk_str path)
{
    switch (r->kind) {
    case MK_ROUTE_ALL:
        return true;
    case MK_ROUTE_PREFIX: {
        mk_str folder = mk_str_take(r->pattern, r->pattern.len - 1);
        return mk_str_starts(path, folder) || mk_str_eq(path, mk_str_take(folder, folder.len - 1));
    }
    case MK_ROUTE_SUFFIX:
        return mk_str_ends(path, mk_str_skip(r->pattern, 1));
    case MK_ROUTE_EXACT:
        return mk_str_eq(path, r->pattern);
    case MK_ROUTE_REGEX:
        return regexec(r->regex, path.p, 0, NULL, 0) == 0; /* a path ends with a NUL, and holds none */
    case MK_ROUTE_GLOB:
        break;
    }
    return mk_str_match(path, r->pattern);
}
