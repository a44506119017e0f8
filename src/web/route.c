/* SPDX-License-Identifier: Apache-2.0 */
#include "web/route.h"

#include "base/def.h"

bool mk_route_matches(const struct mk_route *r, mk_str path)
{
    if (MK_UNLIKELY(r->regex != NULL)) /* a path ends with a NUL, and holds none */
        return regexec(r->regex, path.p, 0, NULL, 0) == 0;
    return mk_pattern_matches(&r->pattern, path);
}

bool mk_route_is_catch_all(const struct mk_route *r)
{
    return !r->regex && r->pattern.kind == MK_PATTERN_ALL;
}
