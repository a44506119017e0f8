/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the place of route_conditions.c in a server without conditions. */
#include "setup/route_conditions.h"

struct mk_conditions *mk_route_conditions_new(const struct mk_conf_ctx *ctx)
{
    mk_conf_ctx_error(ctx, mk_conf_ctx_key(ctx), "this server was built without conditions");
    mk_conf_ctx_hint(ctx, "build with MK_CONDITIONS=ON");
    return NULL;
}

void mk_route_conditions_parse(struct mk_conditions *conditions, const struct mk_conf_ctx *ctx, mk_str text)
{
    (void)conditions;
    (void)ctx;
    (void)text;
}

void mk_route_conditions_index(struct mk_arena *arena, struct mk_route *routes, size_t n)
{
    (void)arena;
    (void)routes;
    (void)n;
}
