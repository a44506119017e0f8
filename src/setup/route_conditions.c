/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/route_conditions.h"

#include "setup/condition_index.h"
#include "web/route.h"

enum {
    SUBJECTS = MK_CONDITION_PATH | MK_CONDITION_CONTAINS | MK_CONDITION_FROM | MK_CONDITION_METHOD |
               MK_CONDITION_REFERER | MK_CONDITION_HOST | MK_CONDITION_SCHEME | MK_CONDITION_QUERY |
               MK_CONDITION_HEADER | MK_CONDITION_COOKIE | MK_CONDITION_PARAMETER | MK_CONDITION_COUNTRY |
               MK_CONDITION_ASN | MK_CONDITION_FILE
};

static enum mk_regex_result match_conditions(const struct mk_conditions *conditions,
                                             struct mk_request *request, mk_str path)
{
    return mk_conditions_match_current(conditions, request, path, 0);
}

struct mk_conditions *mk_route_conditions_new(const struct mk_conf_ctx *ctx)
{
    struct mk_conditions *conditions = mk_conditions_new(ctx);
    if (conditions)
        conditions->match = match_conditions;
    return conditions;
}

void mk_route_conditions_parse(struct mk_conditions *conditions, const struct mk_conf_ctx *ctx, mk_str text)
{
    (void)!mk_conditions_parse(conditions, ctx, text, SUBJECTS, false);
}

void mk_route_conditions_index(struct mk_arena *arena, struct mk_route *routes, size_t n)
{
    bool has_conditions = false;
    for (size_t i = 0; i < n; i++)
        has_conditions = has_conditions || routes[i].when;
    const struct mk_conditions **lists = has_conditions ? mk_arena_zalloc(arena, n, sizeof *lists) : NULL;
    for (size_t i = 0; lists && i < n; i++)
        lists[i] = routes[i].regex ? NULL : routes[i].when; /* an expression may exceed its limit */
    const struct mk_condition_index *index = lists ? mk_condition_index_build(arena, lists, n) : NULL;
    for (size_t i = 0; index && i < n; i++)
        routes[i].run = index->runs[i];
}
