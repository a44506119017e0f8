/* SPDX-License-Identifier: Apache-2.0 */
#include "web/route.h"

bool mk_route_is_catch_all(const struct mk_route *r)
{
    return !r->regex && r->pattern.kind == MK_PATTERN_ALL;
}
